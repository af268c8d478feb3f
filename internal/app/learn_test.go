package app

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/gateway"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats/archive"
)

const learningRules = `rules: [{id: tokens, key: user, algorithm: fixed_window, limit: 1000000/1d, tokens: {reserve: {output: p95}}}]`

// learner is an instance with a clock.
type learner struct {
	learning
	t    *testing.T
	gate *engine.Gate
	now  *time.Time
	log  *strings.Builder
}

func newLearner(t *testing.T, a archive.Store, now *time.Time) *learner {
	t.Helper()
	clock := func() weir.Micros { return weir.MicrosOf(*now) }
	e := testkit.Must(engine.New(engine.Options{Clock: clock}))(t)
	t.Cleanup(e.Close)
	testkit.OK(t, e.Load("rules.yaml", []byte(learningRules)))
	log := new(strings.Builder)
	l := learning{engine: e, archive: a, clock: func() time.Time { return *now }, logger: slog.New(slog.NewTextHandler(log, nil))}
	return &learner{l, t, testkit.Must(engine.NewGate(e, 0, nil))(t), now, log}
}

// ask lets a user have an answer, and returns what was reserved for it.
func (l *learner) ask(user, model string, length int64) int64 {
	l.t.Helper()
	var v engine.Verdict
	var d engine.Denial
	req := rule.Request{User: user, Prompt: &rule.Prompt{Model: model, Input: 1, MaxOutput: 20_000}}
	if ok, err := l.gate.Reserve(l.t.Context(), &req, time.Minute, &v, &d); !ok || err != nil {
		l.t.Fatal(ok, err)
	}
	reserved := v.Results[0].Cost
	testkit.OK(l.t, l.gate.Serve(&req, time.Minute, &v).End(&rule.Response{Status: 200, Tokens: &rule.Usage{Input: 1, Output: length}}, nil))
	*l.now = l.now.Add(time.Second)
	return reserved - 1
}

func (l *learner) teach(model string, n int, length int64) {
	l.t.Helper()
	for i := range n {
		l.ask(fmt.Sprint("user", i%8), model, length)
	}
}

func (l *learner) exchanges(what string) {
	l.t.Helper()
	if err := l.exchange(l.t.Context()); err != nil {
		l.t.Errorf("%s: %v", what, err)
	}
}

// Instances share what they have learned, although they write at the same time. One that starts knows it, until it is a week old;
// what follows decays as it does in one instance. A note that cannot be read is replaced.
func TestLearningIsShared(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	shared := testkit.Must(archive.NewMemory(archive.Keep{}))(t)
	a, b := newLearner(t, shared, &now), newLearner(t, shared, &now)
	a.teach("m", 200, 1000)
	b.teach("m", 200, 3000)
	b.teach("n", 200, 50)
	for range 2 {
		a.exchanges("a")
		b.exchanges("b")
	}
	a.exchanges("a")
	late := newLearner(t, shared, &now)
	late.exchanges("a new one")
	for name, l := range map[string]*learner{"a": a, "b": b, "a new one": late} {
		if m, n := l.ask("x", "m", 1000), l.ask("x", "n", 50); m < 3000 || m > 3300 || n > 60 {
			t.Errorf("%s reserves %d and %d", name, m, n)
		}
	}
	before := testkit.Must(shared.Notes(t.Context(), learnedNotes, now))(t)
	broken := before[0]
	broken.Text = []byte("broken")
	testkit.OK(t, shared.SetNote(t.Context(), learnedNotes, broken, now))
	if err := a.exchange(t.Context()); err == nil {
		t.Error("nobody learns of a broken note")
	}
	if after := testkit.Must(shared.Notes(t.Context(), learnedNotes, now))(t); len(after) != 2 || len(after[0].Text) < 1000 {
		t.Error("a broken note stays")
	}
	// Shorter answers count for all when others have taken the places of the longer ones.
	for range 10 {
		a.teach("m", 60, 100)
		a.exchanges("a")
		b.exchanges("b")
		now = now.Add(6 * time.Hour)
	}
	if m := b.ask("x", "m", 100); m > 120 {
		t.Errorf("after days of shorter answers, %d are reserved", m)
	}
	now = now.Add(learnedKept + time.Hour)
	late = newLearner(t, shared, &now)
	late.exchanges("a week later")
	if m := late.ask("x", "m", 100); m != 20_000 {
		t.Errorf("a week later, %d are reserved", m)
	}
}

// More models than there is room for do not displace those that are shared.
func TestLearningIsBounded(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	shared := testkit.Must(archive.NewMemory(archive.Keep{}))(t)
	a, b := newLearner(t, shared, &now), newLearner(t, shared, &now)
	a.teach("m", 200, 1000)
	a.exchanges("a")
	for n := range archive.MaxNotes + 10 {
		b.teach(fmt.Sprint("invented", n), 40, 1)
	}
	b.teach("used", 200, 1000)
	b.exchanges("b") // which offers no more than there may be
	late := newLearner(t, shared, &now)
	late.exchanges("a new one")
	if m, used := late.ask("x", "m", 1000), late.ask("x", "used", 1000); m > 1100 || used > 1100 {
		t.Errorf("%d and %d are reserved", m, used)
	}
}

// If there is no room for a new note, those that are there are updated. The log says so once, and again if it was mended between.
func TestLearningWithoutRoom(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	shared := testkit.Must(archive.NewMemory(archive.Keep{}))(t)
	a := newLearner(t, shared, &now)
	a.teach("m", 120, 100)
	a.exchanges("a")
	other := testkit.Must(shared.Notes(t.Context(), learnedNotes, now))(t)[0]
	for n := range archive.MaxNotes - 1 {
		if other.ID = fmt.Sprint("other model", n); n == 2 {
			other.Until = now.Add(time.Hour)
		}
		testkit.OK(t, shared.SetNote(t.Context(), learnedNotes, other, now))
	}
	a.teach("best", 300, 100)
	a.teach("better", 250, 100)
	for range 3 {
		a.teach("m", 20, 1000)
		a.share(t.Context())
	}
	late := newLearner(t, shared, &now)
	late.exchanges("a new one")
	if m := late.ask("x", "m", 1000); m < 1000 || m > 1100 {
		t.Errorf("a note is not updated: %d are reserved", m)
	}
	if got := a.log.String(); strings.Count(got, "not shared completely") != 1 || !strings.Contains(got, archive.ErrNoRoom.Error()) {
		t.Errorf("the log has\n%s", got)
	}
	now = now.Add(time.Hour)
	a.share(t.Context())
	broken := archive.Note{ID: "tokens m", Text: []byte("broken"), Until: now.Add(learnedKept)}
	testkit.OK(t, shared.SetNote(t.Context(), learnedNotes, broken, now))
	a.share(t.Context())
	if got := a.log.String(); strings.Count(got, "not shared completely") != 2 || !strings.Contains(got, "other version") {
		t.Errorf("the log has\n%s", got)
	}
}

// An instance that starts beside another one on the same Redis, and one that starts again with its data, reserve what
// was learned.
func TestLearningSurvives(t *testing.T) {
	defer func(before time.Duration) { learnEvery = before }(learnEvery)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":100,"total_tokens":110}}`))
	}))
	t.Cleanup(upstream.Close)
	const rules = `rules: [{id: tokens, key: "header:X-Client", algorithm: fixed_window, limit: 1000000/1d, tokens: {reserve: {output: p50}}}]`
	start := func(o Options) *App {
		t.Helper()
		o.Limits.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		o.Gateway = &Gateway{Listen: "127.0.0.1:0", Options: gateway.Options{Routes: []gateway.Route{testkit.Must(gateway.ParseRoute(upstream.URL))(t)}}}
		o, _ = prepared(t, o, rules)
		return started(t, o)
	}
	clients := 0
	say := func(a *App, user int) string {
		t.Helper()
		clients++
		req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+a.Addrs().Gateway.String()+"/v1/chat/completions", strings.NewReader(`{"model":"m","max_tokens":10000,"messages":[{"role":"user","content":"hi"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Forwarded-For", fmt.Sprint("10.0.0.", user))
		req.Header.Set("X-Client", fmt.Sprint(clients)) // with a budget of its own, so that what is left tells what is reserved
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		return res.Header.Get("X-Ratelimit-Remaining-Tokens")
	}
	for name, o := range map[string]Options{"data": {Data: t.TempDir()}, "redis": {Store: "redis://" + testredis.Start(t).Addr + "?timeout=10s"}} {
		t.Run(name, func(t *testing.T) {
			if learnEvery = 50 * time.Millisecond; o.Data != "" {
				learnEvery = time.Hour // the end and the start are enough
			}
			first := start(o)
			for n := range 80 {
				say(first, n%8)
			}
			known := say(first, 1)
			if !strings.HasPrefix(known, "9998") {
				t.Fatalf("%s are left while an answer is open", known)
			}
			if o.Data != "" {
				testkit.OK(t, first.Stop(t.Context()))
			}
			second := start(o)
			waitFor(t, "what the first has learned", func() bool { return say(second, 1) == known })
		})
	}
}
