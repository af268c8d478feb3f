package replay

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
)

var update = flag.Bool("update", false, "write the golden files again")

func golden(t *testing.T, file string, write func(io.Writer) error) {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("%s differs (go test -update writes it again):\n%s", path, b.Bytes())
	}
}

func TestGolden(t *testing.T) {
	log, err := Open("../../../examples/logs/access.log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	r, err := Run(context.Background(), Options{Table: example(t, "endpoints.yaml")}, log)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "access.txt", func(w io.Writer) error { return r.WriteText(w, 80) })
	golden(t, "access.json", r.WriteJSON)
	golden(t, "access.svg", r.WriteSVG)
	golden(t, "access.html", r.WriteHTML)
	golden(t, "access.csv", r.WriteCSV)
}

const perAddress = "rules: [{id: a, key: ip, algorithm: sliding_log, limit: 2/10s}]"

// line is a request of an address, some seconds after ten o'clock.
func line(seconds float64, ip string) string {
	at := time.Date(2026, 11, 15, 10, 0, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
	return fmt.Sprintf("{\"time\":%q,\"ip\":%q}\n", at.Format(time.RFC3339Nano), ip)
}

func TestTimesOfTheLog(t *testing.T) {
	log := line(0, "192.0.2.1") + line(1, "192.0.2.1") + line(2, "192.0.2.1") + // the third is denied
		line(9.999999, "192.0.2.1") + line(10, "192.0.2.1") + line(10.5, "192.0.2.2") // one free at 10 s
	r := run(t, Options{Table: compile(t, perAddress)}, log)
	if r.Requests != 6 || r.Denied != 2 || r.Rules[0].Applied != 6 || r.Rules[0].Denied != 2 || r.Rules[0].Clients != 1 {
		t.Errorf("%+v", r)
	}
	if len(r.Top) != 1 || r.Top[0].Client != "ip:192.0.2.1" || r.Top[0].Denied != 2 || r.Top[0].First >= r.Top[0].Last {
		t.Errorf("%+v", r.Top)
	}
}

// A rule denies when one of its limits does, whichever it is.
func TestSeveralLimits(t *testing.T) {
	for _, limits := range []string{"[1/1m, 5/1h]", "[5/1m, 1/1h]"} {
		table := compile(t, "rules: [{id: a, key: ip, algorithm: sliding_log, limits: "+limits+"}]")
		r := run(t, Options{Table: table}, strings.Repeat(line(0, "192.0.2.1"), 3))
		if r.Denied != 2 || r.Rules[0].Applied != 3 || r.Rules[0].Denied != 2 || len(r.Rules[0].Suggestions) != 2 {
			t.Errorf("%s: %+v", limits, r.Rules)
		}
	}
}

// With a directory, a log that has only API keys is charged at every level, and the report tells which level denies.
func TestLevels(t *testing.T) {
	table := compile(t, `
levels: [org, team, user]
rules:
  - {id: spend, key: levels, algorithm: sliding_log, levels: {org: 5/1h, team: 3/1h, user: 3/1h}, tiers: {pro: {levels: {user: unlimited}}}}
`)
	directory, problems, err := rule.ReadDirectory("", strings.NewReader(`{"client": "api_key:a", "parent": "user:ann"}
{"client": "user:ann", "parent": "team:red", "tier": "pro"}
{"client": "team:red", "parent": "org:acme"}
{"client": "api_key:b", "parent": "user:bob"}
{"client": "user:bob", "parent": "org:acme"}
{"client": "org:acme"}
`))
	if err := errors.Join(err, problems.Err()); err != nil {
		t.Fatal(err)
	}
	log := ""
	for i, key := range []string{"a", "a", "a", "a", "b", "b", "b", "unknown"} { // the team denies the fourth, the organization the seventh
		log += fmt.Sprintf("{\"time\":\"2026-11-15T10:00:%02dZ\",\"api_key\":%q}\n", i, key)
	}
	r := run(t, Options{Table: table, Clients: engine.Clients{Directory: directory}}, log)
	var said []string
	for _, l := range r.Rules[0].Levels {
		said = append(said, fmt.Sprint(l.Level, " ", l.Limits, " ", l.Denied, " of ", l.Applied))
	}
	want := "org [sliding_log 5/1h] 1 of 7, team [sliding_log 3/1h] 1 of 4, user [sliding_log 3/1h] 0 of 3"
	if got := strings.Join(said, ", "); got != want || r.Rules[0].Applied != 7 || r.Rules[0].Denied != 2 || r.Free != 1 {
		t.Errorf("%s; want %s; %+v", got, want, r)
	}
	if len(r.Top) != 2 || r.Top[0].Client != "org:acme" && r.Top[1].Client != "org:acme" {
		t.Errorf("denied are %+v", r.Top)
	}
	for _, s := range r.Rules[0].Suggestions {
		if wanted := map[string]int64{"org": 7, "team": 4, "user": 3}[s.Level]; s.Requests != wanted {
			t.Errorf("limits of %s are from %d requests, want %d", s.Level, s.Requests, wanted)
		}
	}
	var text strings.Builder
	if err := r.WriteText(&text, 80); err != nil || !strings.Contains(text.String(), "\n  team  sliding_log 3/1h") || !strings.Contains(text.String(), "\nspend:team  sliding_log 3/1h") {
		t.Errorf("%v:\n%s", err, text.String())
	}
	r = run(t, Options{Table: table, Clients: engine.Clients{Directory: directory, DenyUnknown: true}}, log)
	if r.Blocked != 1 || r.Free != 0 {
		t.Errorf("with unknown ones denied: %+v", r)
	}
}

// A line that is late by no more than the bound is checked in its order.
func TestDisorder(t *testing.T) {
	in := []string{line(0, "192.0.2.1"), line(5, "192.0.2.1"), line(12, "192.0.2.1"), line(30, "192.0.2.1")}
	table := compile(t, perAddress)
	want := run(t, Options{Table: table}, strings.Join(in, ""))
	out := strings.Join([]string{in[1], in[0], in[2], in[3]}, "")
	got := run(t, Options{Table: table}, out)
	if got.Denied != want.Denied || got.Reordered != 1 || got.Late != 0 || want.Reordered != 0 {
		t.Errorf("%+v", got)
	}
	late := run(t, Options{Table: table, Disorder: -1}, out)
	if late.Late != 1 || late.Requests != 4 || !strings.Contains(strings.Join(late.Notes, " "), "1 line arrived more than") {
		t.Errorf("%+v", late)
	}
}

// One line from the far future does not carry the clock away.
func TestSlipInTime(t *testing.T) {
	log := line(0, "192.0.2.1") + line(1e8, "192.0.2.9") + line(1, "192.0.2.1") + line(2, "192.0.2.1") + line(20, "192.0.2.1")
	r := run(t, Options{Table: compile(t, perAddress)}, log)
	if r.Requests != 5 || r.Denied != 1 || r.Late != 0 {
		t.Errorf("%+v", r)
	}
}

func TestBadLines(t *testing.T) {
	long := `{"time":"2026-11-15T10:00:00Z","x":"` + strings.Repeat("x", 3*maxLine) + "\"}\n"
	longish := `{"time":"2026-11-15T10:00:00Z","x":"` + strings.Repeat("x", maxLine) + "\"}\n"
	good := line(0, "192.0.2.1")
	log := good + "nonsense \x1b[31m\u202e" + strings.Repeat("z", 500) + "\n" + "\n" + long + "\r\n" + strings.TrimSuffix(good, "\n") + "\r\n" + longish + good +
		strings.Repeat("{\n", 10) + strings.TrimSuffix(good, "\n")
	r := run(t, Options{Table: compile(t, perAddress)}, log)
	if r.Requests != 4 || r.Bad != 13 || r.Lines != 19 || len(r.BadLines) != maxShown {
		t.Errorf("%d requests, %d of %d lines are bad: %+v", r.Requests, r.Bad, r.Lines, r.BadLines)
	}
	for i, want := range []string{"log:2: no time", "log:4: longer than 65536 bytes", "log:7: longer than", "log:9: not a JSON", "log:10: not a JSON"} {
		bad := r.BadLines[i]
		if got := fmt.Sprintf("%s:%d: %s", bad.Log, bad.Line, bad.Reason); !strings.HasPrefix(got, want) {
			t.Errorf("%s; want %s", got, want)
		}
	}
	if n := strings.Count(r.BadLines[0].Text, "z"); n == 0 || n > 60 {
		t.Errorf("%q is shown", r.BadLines[0].Text)
	}
	var b strings.Builder
	if err := r.WriteText(&b, 80); err != nil || strings.ContainsAny(b.String(), "\x1b\u202e") {
		t.Errorf("%v: %q", err, b.String())
	}
}

// A very long log without a single end of a line is one bad line.
func TestNoEndOfLine(t *testing.T) {
	r := run(t, Options{Table: compile(t, perAddress)}, strings.Repeat("x", 10*chunk))
	if r.Bad != 1 || r.Lines != 1 || r.Requests != 0 {
		t.Errorf("%+v", r)
	}
	var b bytes.Buffer
	for _, write := range []func(io.Writer) error{func(w io.Writer) error { return r.WriteText(w, 80) }, r.WriteJSON, r.WriteSVG, r.WriteHTML, r.WriteCSV} {
		if err := write(&b); err != nil {
			t.Error(err)
		}
	}
	if !strings.Contains(b.String(), "there are no requests") {
		t.Errorf("%s", b.String())
	}
}

// Lines are the same wherever the pieces end in which they are read.
func TestPieces(t *testing.T) {
	var log strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&log, "{\"time\":%d,\"ip\":\"192.0.2.1\",\"pad\":%q}\n", 1_794_700_800+i, strings.Repeat("p", i%517))
	}
	r := run(t, Options{Table: compile(t, perAddress)}, log.String())
	if r.Requests != 3000 || r.Bad != 0 || int64(r.To-r.From) != 2999*1_000_000 {
		t.Errorf("%+v", r)
	}
}

func TestOptionsErrors(t *testing.T) {
	table := compile(t, perAddress)
	log := NewLog("log", strings.NewReader(""))
	for _, c := range []struct {
		o    Options
		logs []*Log
		want string
	}{
		{Options{}, []*Log{log}, "Options.Table is required"},
		{Options{Table: table}, nil, "a log is required"},
		{Options{Table: table}, make([]*Log, MaxLogs+1), "129 logs are too many"},
		{Options{Table: table, Disorder: 25 * time.Hour}, []*Log{log}, "a disorder of 25h0m0s is too long"},
		{Options{Table: table, Top: -1}, []*Log{log}, "out of range"},
		{Options{Table: table, Shares: []float64{1}}, []*Log{log}, "1 is not a share"},
	} {
		if _, err := Run(context.Background(), c.o, c.logs...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v; want %q", err, c.want)
		}
	}
}

// endless is a log that goes on until it is closed.
type endless struct{ stop chan struct{} }

func (e endless) Read(p []byte) (int, error) {
	select {
	case <-e.stop:
		return 0, io.EOF
	default:
		return copy(p, line(0, "192.0.2.1")), nil
	}
}

func TestContextEnds(t *testing.T) {
	e := endless{make(chan struct{})}
	defer close(e.stop)
	ctx, cancel := context.WithCancel(context.Background())
	o := Options{Table: compile(t, perAddress), Progress: func(p Progress) {
		if p.Requests > 10_000 {
			cancel()
		}
	}}
	if _, err := Run(ctx, o, NewLog("log", e)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A log that blocks does not keep a replay whose context has ended.
func TestContextEndsWhileReading(t *testing.T) {
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		_, err := Run(ctx, Options{Table: compile(t, perAddress)}, NewLog("log", r))
		done <- err
	}()
	io.WriteString(w, line(0, "192.0.2.1")) // it is being read
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	w.Close()
}
