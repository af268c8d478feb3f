package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/internal/traffic/scenario"
	"github.com/weirhq/weir/internal/traffic/simulate"
)

// A page narrower than this has no room for a timeline, a wider one is a slip.
const minWidth, maxWidth = 40, 500

// simulateFlags is what weir simulate is told.
type simulateFlags struct {
	limit      string
	algorithms []string
	traffic    string
	scenario   string
	log        string
	seed       uint64
	ascii      bool
	reportFlags
}

// reportFlags say how a report is written.
type reportFlags struct {
	width       int
	output, out string
}

func (f *reportFlags) addWidth(cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.width, "width", 80, "width of the output in `columns`")
}

func (f *reportFlags) addOutput(cmd *cobra.Command) {
	addOutput(cmd, &f.output)
	cmd.Flags().StringVar(&f.out, "out", "", "also write a chart to this `file`: .svg, .html or .csv")
}

func (f *reportFlags) validate() error {
	if f.width < minWidth || f.width > maxWidth {
		return usage("--width: %d is out of range; write %d to %d", f.width, minWidth, maxWidth)
	}
	ending := strings.ToLower(filepath.Ext(f.out))
	if f.out == "" || slices.Contains(drawings, ending) {
		return nil
	}
	if near := notation.Nearest(ending, drawings); near != "" {
		return usage("--out: %q is not a known kind of file; did you mean %s?", f.out, near)
	}
	return usage("--out: %q is not a known kind of file; write a name that ends in .svg, .html or .csv", f.out)
}

func newSimulate() *cobra.Command {
	var f simulateFlags
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Compare the algorithms on the same traffic",
		Long: `Compare the algorithms: show what each of them allows and denies of the same traffic.

weir computes the result: it sends nothing and does not wait. The same flags always
give the same result.

Write traffic as terms, separated by commas:

  50@10s         50 requests at once, 10 s after the start
  50@10s..20s    50 requests spread evenly over these 10 s
  3/1s@0s..1m    3 a second for a minute, evenly spaced

or as one of these patterns, scaled to the limit of N in a period:

` + patternList() + `
or as a file with --log, one line per request: its time, and optionally the client
and the cost, as in "2026-11-15T10:30:15.250Z alice 2" or "1.5s".

If the limit has calendar periods, traffic without dates begins with the first one of
2026.

In the table, "most in" is the most units that were allowed within any one period, and
"bound" is the most that the algorithm could allow for any traffic.`,
		Example: `  weir simulate
  weir simulate --limit "100/1m burst 20" --traffic overload
  weir simulate --limit 10/1s --traffic 5/1s@0s..20s,30@10s
  weir simulate --limit "100/month zone Asia/Shanghai starts 15"
  weir simulate --algorithm token_bucket,sliding_log --traffic poisson --seed 7
  weir simulate --scenario attack.txt
  weir simulate --log times.txt --limit 5/10s
  weir simulate --traffic sawtooth --out sawtooth.svg
  weir simulate --output json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.validate(cmd); err != nil {
				return err
			}
			if f.scenario != "" {
				return f.runScenario(cmd)
			}
			return f.runTraffic(cmd)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.limit, "limit", "100/1m", "`limit` as N/period with options, for example \"sliding_buckets 100/1m buckets 10\"; each option applies to every algorithm that has it")
	flags.StringVar(&f.traffic, "traffic", "boundary", "`traffic` to simulate, as above")
	flags.StringSliceVar(&f.algorithms, "algorithm", nil, "algorithms to show (`name list`): "+strings.Join(simulate.LaneNames(), ", ")+" (default all)")
	flags.StringVar(&f.scenario, "scenario", "", "scenario `file` with limits and traffic (- for standard input); its expected answers are checked")
	flags.StringVar(&f.log, "log", "", "log `file` with the times of the traffic (- for standard input)")
	flags.Uint64Var(&f.seed, "seed", 1, "seed `number` for random traffic")
	f.addWidth(cmd)
	flags.BoolVar(&f.ascii, "ascii", false, "draw with ASCII characters only")
	f.addOutput(cmd)
	return cmd
}

func patternList() string {
	var b strings.Builder
	for _, p := range simulate.Patterns() {
		fmt.Fprintf(&b, "  %-13s  %s\n", p.Name, p.About)
	}
	return b.String()
}

func (f *simulateFlags) validate(cmd *cobra.Command) error {
	if err := f.reportFlags.validate(); err != nil {
		return err
	}
	if cmd.Flags().Changed("log") && cmd.Flags().Changed("traffic") {
		return usage("--log and --traffic exclude each other; use one of them")
	}
	if !cmd.Flags().Changed("scenario") {
		return nil
	}
	for _, other := range []string{"limit", "traffic", "log", "seed"} {
		if cmd.Flags().Changed(other) {
			return usage("--%s and --scenario exclude each other; write it in the scenario", other)
		}
	}
	if f.scenario == "" {
		return usage("--scenario is empty; write the name of a file, or - for standard input")
	}
	return nil
}

func (f *simulateFlags) runTraffic(cmd *cobra.Command) error {
	limit, err := weir.ParseLimit(f.limit)
	if err != nil {
		return usageError{err}
	}
	traffic, err := f.readTraffic(cmd, limit)
	if err != nil {
		return err
	}
	return f.show(cmd.OutOrStdout(), simulate.Case{Limit: limit, Traffic: traffic})
}

// readTraffic reads the traffic, or the log that it is in.
func (f *simulateFlags) readTraffic(cmd *cobra.Command, limit weir.Limit) (simulate.Traffic, error) {
	if !cmd.Flags().Changed("log") {
		traffic, err := simulate.ParseTraffic(f.traffic, limit, f.seed, simulate.MaxRequests)
		if err != nil {
			err = usageError{err}
		}
		return traffic, err
	}
	name, src, err := readInput(cmd, f.log, simulate.MaxLog, "log of times")
	if err != nil {
		return simulate.Traffic{}, err
	}
	return simulate.ParseLog(name, string(src), limit)
}

// show plays the cases, prints them, and draws them if that was asked for.
func (f *simulateFlags) show(w io.Writer, cases ...simulate.Case) error {
	reports, err := f.play(cases, f.width-simulate.Margin)
	if err != nil {
		return err
	}
	if err := f.draw(cases); err != nil {
		return err
	}
	return f.write(w, reports)
}

// play makes a report of each case, for the algorithms that were asked for.
func (f *simulateFlags) play(cases []simulate.Case, columns int) ([]*simulate.Report, error) {
	var reports []*simulate.Report
	for _, c := range cases {
		lanes, leftOut := simulate.AllLanes(c.Limit)
		if len(f.algorithms) > 0 {
			var err error
			if lanes, err = simulate.Lanes(c.Limit, f.algorithms...); err != nil {
				return nil, usageError{err}
			}
			leftOut = nil
		}
		c.Traffic.Notes = slices.Concat(c.Traffic.Notes, leftOut)
		r := simulate.Run(c.Limit, lanes, c.Traffic, columns)
		r.Name = c.Name
		reports = append(reports, r)
	}
	return reports, nil
}

func (f *simulateFlags) write(w io.Writer, reports []*simulate.Report) error {
	if f.output == "json" {
		return simulate.WriteJSON(w, reports)
	}
	look := simulate.Look{Width: f.width, ASCII: f.ascii, Color: isTerminal(w)}
	for i, r := range reports {
		if i > 0 {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		if err := r.WriteText(w, look); err != nil {
			return err
		}
	}
	return nil
}

// drawings are the endings of the files that pictures can be written to.
var drawings = []string{".svg", ".html", ".csv"}

// writers are the ways to write a result, by the endings of files.
type writers map[string]func(io.Writer) error

// draw writes a picture into a file, if there is one. The file is written as a
// whole, or not at all if something is wrong with the picture.
func draw(path string, w writers) error {
	if path == "" {
		return nil
	}
	var b bytes.Buffer
	if err := w[strings.ToLower(filepath.Ext(path))](&b); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// draw plays the cases once more, in the finer slices that a picture has room for.
func (f *simulateFlags) draw(cases []simulate.Case) error {
	if f.out == "" {
		return nil
	}
	reports, err := f.play(cases, simulate.PictureColumns)
	if err != nil {
		return err
	}
	return draw(f.out, writers{
		".svg":  func(w io.Writer) error { return simulate.WriteSVG(w, reports) },
		".html": func(w io.Writer) error { return simulate.WriteHTML(w, reports) },
		".csv":  func(w io.Writer) error { return simulate.WriteCSV(w, reports) },
	})
}

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
	return say(cmd, "\n%s\n", held)
}

func differ(err error, answered int) string {
	wrong := 1
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		wrong = len(joined.Unwrap())
	}
	return fmt.Sprintf("%d of %d expected answers are wrong; correct them, or the limit in the file", wrong, answered)
}
