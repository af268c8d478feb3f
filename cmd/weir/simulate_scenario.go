package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/scenario"
	"github.com/weirhq/weir/internal/simulate"
)

const maxScenario = 1 << 20 // bytes

// runScenario simulates every limit of a scenario file, and checks the answers
// that the file expects.
func (f *simulateFlags) runScenario(cmd *cobra.Command) error {
	name, src, err := readInput(cmd, f.scenario, maxScenario, "scenario")
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
	held := fmt.Sprintf("All %d expected answers of %s are correct.", answered, script.Name)
	if answered == 1 {
		held = fmt.Sprintf("The one expected answer of %s is correct.", script.Name)
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
	return fmt.Sprintf("%d of %d expected answers are wrong; correct them, or the limit in the file", wrong, answered)
}
