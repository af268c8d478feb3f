package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/scenario"
	"github.com/weirhq/weir/internal/simulate"
)

const maxScenario = 1 << 20 // bytes

// runScenario simulates every limit of a scenario file, and checks the answers
// that the file expects.
func (f *simulateFlags) runScenario(cmd *cobra.Command) error {
	name, src, err := readInput(f.scenario, cmd.InOrStdin(), maxScenario)
	if err != nil {
		return err
	}
	script, err := scenario.Parse(name, src)
	if err != nil {
		return err
	}
	cases, err := simulate.FromScript(script)
	if err != nil {
		return err
	}
	if err := f.show(cmd.OutOrStdout(), cases...); err != nil {
		return err
	}
	return f.checkAnswers(cmd, script, script.Answered())
}

// checkAnswers runs the script as it stands. What it says goes with the text,
// but not into a JSON document.
func (f *simulateFlags) checkAnswers(cmd *cobra.Command, script *scenario.Script, answered int) error {
	if answered == 0 {
		return nil
	}
	if err := script.Run(cmd.Context(), scenario.NewModel().Subject()); err != nil {
		return fmt.Errorf("%w\n%s: %s", err, script.Name, differ(err, answered))
	}
	if f.output == "json" {
		return nil
	}
	held := fmt.Sprintf("All %d answers of %s held.", answered, script.Name)
	if answered == 1 {
		held = fmt.Sprintf("The one answer of %s held.", script.Name)
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "\n%s\n", held)
	return err
}

func differ(err error, answered int) string {
	wrong := 1
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		wrong = len(joined.Unwrap())
	}
	return fmt.Sprintf("%d of %d answers did not hold; correct the file, or the limit in it", wrong, answered)
}

// readInput reads a file, or standard input, of at most so many bytes.
func readInput(path string, stdin io.Reader, most int64) (name string, src []byte, err error) {
	name, from := "standard input", stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return "", nil, err
		}
		defer file.Close()
		name, from = path, file
	}
	src, err = io.ReadAll(io.LimitReader(from, most+1))
	if err == nil && int64(len(src)) > most {
		err = fmt.Errorf("%s: it has more than %d bytes; choose a shorter one", name, most)
	}
	return name, src, err
}
