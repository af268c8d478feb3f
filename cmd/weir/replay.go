package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/traffic/replay"
)

// replayFlags is what weir replay is told.
type replayFlags struct {
	rules    string
	clients  string
	format   string
	fields   replay.Fields
	host     string
	disorder time.Duration
	maxKeys  int
	top      int
	shares   []string
	quiet    bool
	reportFlags
}

func newReplay() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay --rules file [LOG...]",
		Short: "Apply rules to the requests of an access log",
		Long: `Apply rules to the requests of access logs, and show which clients would have been
denied, how often, by which rule, and which limits would deny a given share. weir sends
nothing: it takes the time from the log, and keeps everything in memory.

A LOG is a file, or - for standard input, which is the default. weir decompresses files
whose name ends in .gz. It merges several logs by time, such as rotated logs and the
logs of several servers. Lines can be in the combined format of nginx and Apache, in
JSON (the usual fields of nginx, Caddy, Traefik and Envoy), or in the default format of
Envoy. weir detects the format of each line by its first character.

Name a field of a JSON log as the log does, with dots for nested fields:
request.remote_ip. A field of a text log is its number, counted from 1, or a name such
as remote_user. Text in quotes or brackets is one field.`,
		Example: `  weir replay --rules rules.yaml access.log
  weir replay --rules rules.yaml --out denied.html access.log access.log.*.gz
  weir replay --rules rules.yaml --user-field user.id --time-field at app.json
  weir replay --rules budgets.yaml --clients clients.ndjson --api-key-field key app.json
  zcat logs/*.gz | weir replay --rules rules.yaml --output json`,
		Args: func(_ *cobra.Command, logs []string) error { return f.validate(logs) },
		RunE: f.run,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.rules, "rules", "", "rules `file` (required)")
	flags.StringVar(&f.clients, "clients", "", "`file` of clients, as for weir serve; it says whose API keys are")
	flags.StringVar(&f.format, "format", "auto", "log `format`: "+strings.Join(replay.Formats(), ", "))
	flags.StringVar(&f.fields.Time, "time-field", "", "`field` with the time of a request (this and the fields below default to the usual names)")
	flags.StringVar(&f.fields.Duration, "duration-field", "", "`field` with the seconds that a request took, if its time is the end of the request")
	flags.StringVar(&f.fields.IP, "ip-field", "", "`field` with the IP address of the client")
	flags.IntVar(&f.fields.Hop, "ip-hop", 1, "position (`number`) of the client's address in a field with several, from the right")
	flags.StringVar(&f.fields.User, "user-field", "", "`field` with the user")
	flags.StringVar(&f.fields.APIKey, "api-key-field", "", "`field` with the API key; shown only as a hash")
	flags.StringVar(&f.fields.Tier, "tier-field", "", "`field` with the tier of the client")
	flags.StringVar(&f.fields.Method, "method-field", "", "`field` with the method")
	flags.StringVar(&f.fields.Path, "path-field", "", "`field` with the path")
	flags.StringVar(&f.fields.Host, "host-field", "", "`field` with the host")
	flags.StringVar(&f.host, "host", "", "`host` of requests whose line has none")
	pairs(flags, &f.fields.Headers, "header", "header and its field, as `name=field` (repeatable)")
	pairs(flags, &f.fields.Cookies, "cookie", "cookie and its field, as `name=field` (repeatable)")
	pairs(flags, &f.fields.Attributes, "attr", "attribute and its field, as `name=field` (repeatable)")
	flags.DurationVar(&f.disorder, "disorder", 10*time.Second, "how far a line may be out of order")
	flags.IntVar(&f.maxKeys, "max-keys", 1<<20, "`count` of keys to keep in memory")
	flags.IntVar(&f.top, "top", 10, "`count` of denied clients to list")
	flags.StringSliceVar(&f.shares, "share", []string{"1%", "0.1%"}, "denied shares to find limits for (`percent list`)")
	f.addWidth(cmd)
	f.addOutput(cmd)
	flags.BoolVar(&f.quiet, "quiet", false, "show no progress")
	return cmd
}

func (f *replayFlags) validate(logs []string) error {
	if err := f.reportFlags.validate(); err != nil {
		return err
	}
	inputs := 0
	for _, name := range append([]string{f.rules, f.clients}, logs...) {
		if name == "-" {
			inputs++
		}
	}
	switch {
	case f.rules == "":
		return usage("--rules is required; write for example weir replay --rules rules.yaml access.log")
	case inputs > 1, inputs == 1 && len(logs) == 0:
		return usage("standard input can be read only once; use files for the others")
	case len(logs) > replay.MaxLogs:
		return usage("%d logs are too many to merge; give at most %d, or concatenate them", len(logs), replay.MaxLogs)
	case f.top < 1 || f.top > 1000:
		return usage("--top: %d is out of range; write 1 to 1000", f.top)
	case f.disorder < 0 || f.disorder > 24*time.Hour:
		return usage("--disorder: %s is out of range; write 0s to 24h", f.disorder)
	case f.maxKeys < 1000 || f.maxKeys > 1<<28:
		return usage("--max-keys: %d is out of range; write 1000 to %d", f.maxKeys, 1<<28)
	}
	return nil
}

func (f *replayFlags) run(cmd *cobra.Command, names []string) error {
	o := replay.Options{Fields: f.fields, Host: f.host, Disorder: f.disorder, MaxKeys: f.maxKeys, Flags: true, Top: f.top}
	if f.disorder == 0 {
		o.Disorder = -1
	}
	var err error
	if o.Shares, err = parseShares(f.shares); err != nil {
		return err
	}
	if o.Format, err = replay.ParseFormat(f.format); err != nil {
		return usageError{err}
	}
	if _, err := replay.NewParser(o.Format, o.Fields); err != nil {
		return usageError{err}
	}
	if o.Table, err = compileFile(cmd, f.rules); err != nil {
		return err
	}
	if f.clients != "" {
		if o.Clients.Directory, err = readClients(cmd, f.clients); err != nil {
			return err
		}
	}
	logs, err := openLogs(names, cmd.InOrStdin())
	defer func() {
		for _, l := range logs {
			l.Close()
		}
	}()
	if err != nil {
		return err
	}
	bar := &replayBar{bar: newBar(cmd.ErrOrStderr())}
	if !f.quiet {
		o.Progress = bar.show
	}
	report, err := replay.Run(cmd.Context(), o, logs...)
	bar.clear()
	if err != nil {
		return err
	}
	if err := draw(f.out, writers{".svg": report.WriteSVG, ".html": report.WriteHTML, ".csv": report.WriteCSV}); err != nil {
		return err
	}
	if f.output == "json" {
		return report.WriteJSON(cmd.OutOrStdout())
	}
	return report.WriteText(cmd.OutOrStdout(), f.width)
}

// openLogs opens all logs, or returns those that it has opened and an error.
func openLogs(names []string, stdin io.Reader) (logs []*replay.Log, err error) {
	if len(names) == 0 {
		names = []string{"-"}
	}
	for _, name := range names {
		l := replay.NewLog("standard input", stdin)
		if name != "-" {
			if l, err = replay.Open(name); err != nil {
				return logs, err
			}
		}
		logs = append(logs, l)
	}
	return logs, nil
}

// parseShares reads shares such as 1% and 0.001.
func parseShares(texts []string) (shares []float64, err error) {
	for _, text := range texts {
		share, err := parseShare(text)
		if err != nil || len(shares) == 5 {
			return nil, usage("--share: %q is invalid; write up to five shares below 100%%, as in --share 1%%,0.1%%", text)
		}
		shares = append(shares, share)
	}
	return shares, nil
}

// bar is how far something is, on a terminal: a line that is written again and again.
type bar struct {
	w     io.Writer // nil if it is not a terminal
	shown bool
}

// newBar returns a bar that shows nothing if w is not a terminal.
func newBar(w io.Writer) bar {
	if !isTerminal(w) {
		w = nil
	}
	return bar{w: w}
}

// draw shows which part is done, unless that is less than 0 and not known, and some words.
func (b *bar) draw(part float64, format string, args ...any) {
	if b.w == nil {
		return
	}
	b.shown = true
	b.clear()
	if part >= 0 {
		const columns = 30
		full := int(min(1, part) * columns)
		fmt.Fprintf(b.w, "[%s%s] %3.0f %%  ", strings.Repeat("=", full), strings.Repeat(" ", columns-full), 100*min(1, part))
	}
	fmt.Fprintf(b.w, format, args...)
}

func (b *bar) clear() {
	if b.shown {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
}

// replayBar is how far a replay is.
type replayBar struct {
	bar
	begun, last time.Time
}

func (b *replayBar) show(p replay.Progress) {
	now := time.Now()
	if b.begun.IsZero() {
		b.begun = now
	}
	if now.Sub(b.last) < 100*time.Millisecond {
		return
	}
	b.last = now
	part := -1.0
	if p.Size > 0 {
		part = float64(p.Read) / float64(p.Size)
	}
	rate := float64(p.Requests) / max(0.001, now.Sub(b.begun).Seconds())
	b.draw(part, "%d requests, %d denied, %.0f a second", p.Requests, p.Denied, rate)
}
