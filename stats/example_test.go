package stats_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/alert"
	"github.com/weirhq/weir/rule"
	_ "github.com/weirhq/weir/rule/rulefile" // reads YAML
	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/stats/archive"
	"github.com/weirhq/weir/store/memory"
)

var ctx = context.Background()

// noon is the time in the examples.
var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

func atNoon() time.Time { return noon.Add(500 * time.Millisecond) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// recorded returns a recorder with 1 request of alice, 4 of bob and 5 of eve.
func recorded() *stats.Recorder {
	kept := must(archive.NewMemory(archive.Keep{}))
	recorder := must(stats.New(stats.Options{Archive: kept, Clock: atNoon}))
	judge(recorder)
	return recorder
}

func recordedEarlier() *stats.Recorder {
	now := noon
	recorder := must(stats.New(stats.Options{Archive: must(archive.NewMemory(archive.Keep{})), Clock: func() time.Time { return now }}))
	judge(recorder)
	now = noon.Add(2 * time.Hour)
	return recorder
}

func tableOf(rules string) *rule.Table {
	set, problems := rule.Parse("rules.yaml", []byte(rules))
	if err := problems.Err(); err != nil {
		panic(err)
	}
	return must(rule.Compile(set, rule.Options{}))
}

func judge(recorder *stats.Recorder) {
	micros := func() weir.Micros { return weir.MicrosOf(noon) }
	e := must(engine.New(engine.Options{Store: memory.New(memory.Options{Clock: micros}), Observers: []engine.Observer{recorder}}))
	e.Install(tableOf("rules: [{id: api, key: user, algorithm: fixed_window, limit: 3/1h}]"), 1)
	var v engine.Verdict
	for i, user := range []string{"alice", "bob", "bob", "bob", "bob", "eve", "eve", "eve", "eve", "eve"} {
		if err := e.Check(ctx, &rule.Request{User: user}, &v); err != nil {
			panic(fmt.Sprint(i, err))
		}
	}
	if err := recorder.Flush(ctx); err != nil {
		panic(err)
	}
}

func Example() {
	kept, err := archive.NewMemory(archive.Keep{})
	if err != nil {
		panic(err)
	}
	recorder, err := stats.New(stats.Options{Archive: kept})
	if err != nil {
		panic(err)
	}
	e, err := engine.New(engine.Options{Store: memory.New(memory.Options{}), Observers: []engine.Observer{recorder}})
	if err != nil {
		panic(err)
	}
	e.Install(tableOf("rules: [{id: api, key: user, limit: 100/1m}]"), 1) // also passes the rules to the recorder

	running, stop := context.WithCancel(ctx)
	done := make(chan error)
	go func() { done <- recorder.Run(running) }()
	// … requests …
	stop() // Run then saves the rest
	fmt.Println(<-done)
	// Output: <nil>
}

func ExampleRecorder_Summary() {
	recorder := recorded()
	s, err := recorder.Summary(ctx, noon, noon.Add(10*time.Second))
	if err != nil {
		panic(err)
	}
	fmt.Printf("%d requests, %.1f a second, %.0f %% denied\n", s.Requests, s.Rate, 100*s.DeniedShare())
	for _, r := range s.Rules {
		fmt.Println(r.Rule, r.Counts.Allowed, r.Counts.Denied)
	}
	// Output:
	// 10 requests, 1.0 a second, 30 % denied
	// api 7 3
}

func ExampleRecorder_Series() {
	recorder := recorded()
	s, err := recorder.Series(ctx, stats.Query{From: noon, To: noon.Add(3 * time.Second)})
	if err != nil {
		panic(err)
	}
	for _, p := range s.Points {
		fmt.Println(p.Time.Format(time.TimeOnly), p.Allowed, p.Denied)
	}
	// Output:
	// 12:00:00 7 3
	// 12:00:01 0 0
	// 12:00:02 0 0
}

func ExampleRecorder_Top() {
	recorder := recorded()
	top, err := recorder.Top(ctx, stats.TopQuery{Rule: "api", By: stats.ByDenied, Window: stats.LastMinute})
	if err != nil {
		panic(err)
	}
	for _, k := range top.Keys {
		fmt.Printf("%s: %d to %d of %d denials\n", k.Key, k.Count-k.Error, k.Count, top.Total)
	}
	// Output:
	// user:eve: 2 to 2 of 3 denials
	// user:bob: 1 to 1 of 3 denials
}

func ExampleRecorder_Clients() {
	recorder := recorded()
	denied, err := recorder.Clients(ctx, stats.ClientsQuery{From: noon, To: noon.Add(20 * time.Second), By: stats.ByDenied})
	if err != nil {
		panic(err)
	}
	for _, c := range denied.Clients {
		fmt.Println(c.Key, c.Count, c.Values, "since", c.First.Format(time.TimeOnly), c.Rules)
	}
	// Output:
	// user:eve 2 [2 0] since 12:00:00 [{api 2 false false}]
	// user:bob 1 [1 0] since 12:00:00 [{api 1 false false}]
}

func ExampleRecorder_Denials() {
	recorder := recorded()
	latest, err := recorder.Denials(ctx, stats.LatestQuery{Rule: "api", N: 5})
	if err != nil {
		panic(err)
	}
	for _, d := range latest.Events {
		fmt.Println(d.At.Time().Format(time.TimeOnly), d.Rule, d.Key)
	}
	// Output:
	// 12:00:00 api user:bob
	// 12:00:00 api user:eve
}

func ExampleRecorder_Usage() {
	recorder := recorded()
	usage, err := recorder.Usage(ctx, "api", noon, noon.Add(time.Hour))
	if err != nil {
		panic(err)
	}
	for _, l := range usage.Limits {
		fmt.Println(l.Requests, "requests,", l.Denied, "denied, p50", l.P50, "and at most", l.Max, "of", l.Limit)
	}
	// Output: 10 requests, 3 denied, p50 2 and at most 3 of 3
}

func ExampleRecorder_Suggest() {
	recorder := recordedEarlier()
	limits, err := recorder.Suggest(ctx, "api", noon, noon.Add(2*time.Hour), 0.3, 0.01)
	if err != nil {
		panic(err)
	}
	for _, l := range limits {
		fmt.Printf("%d of %d requests were denied by the limit for %v\n", l.Denied, l.Requests, l.Period)
		for _, t := range l.Targets {
			fmt.Println(t.Share, t.Units, t.Above, t.Limit)
		}
	}
	// Output:
	// 3 of 10 requests were denied by the limit for 1h0m0s
	// 0.3 3 false 3/1h
	// 0.01 3 true
}

func Example_restart() {
	kept := must(archive.NewMemory(archive.Keep{}))
	recorder := must(stats.New(stats.Options{Archive: kept, Clock: atNoon}))
	judge(recorder)
	dir := must(os.MkdirTemp("", "weir"))
	defer os.RemoveAll(dir)

	file, err := os.Create(filepath.Join(dir, "statistics"))
	if err != nil {
		panic(err)
	}
	if err := kept.Snapshot(file); err != nil {
		panic(err)
	}
	if _, err := file.Seek(0, 0); err != nil {
		panic(err)
	}
	next := must(archive.NewMemory(archive.Keep{}))
	if err := next.Restore(file); err != nil {
		panic(err)
	}
	fmt.Println(next.Size() == kept.Size(), file.Close())
	// Output: true <nil>
}

func Example_alerts() {
	e, err := alert.NewEvaluator([]alert.Check{{Kind: alert.Denied, Threshold: 0.05, Hold: 30 * time.Second}})
	if err != nil {
		panic(err)
	}
	for second := range 120 {
		f := &archive.Frame{Requests: archive.Counts{Allowed: 8, Denied: 2}}
		for _, a := range e.Add(alert.Sample{Time: noon.Add(time.Duration(second) * time.Second), Frame: f}) {
			fmt.Println(a.UpdatedAt.Format(time.TimeOnly), a.State, a.Kind, a.Summary)
		}
	}
	// Output: 12:00:40 firing denied 20.0 % of requests are denied by limits.
}
