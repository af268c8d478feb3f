package loadgen

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
	_ "github.com/weirhq/weir/rule/rulefile"
	"github.com/weirhq/weir/store/memory"
)

func TestRules(t *testing.T) {
	if _, problems := rule.Parse("rules.yaml", DemoRules); len(problems) > 0 {
		t.Error(problems)
	}
}

// fate is what became of the calls of somebody, by rule.
type fate struct{ allowed, denied int }

// play runs a cycle of the script against the rules, in no time.
func play(t *testing.T) (all map[string]*fate, rules map[string]*fate) {
	t.Helper()
	now := weir.MicrosOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	clock := func() weir.Micros { return now }
	e, err := engine.New(engine.Options{Store: memory.New(memory.Options{Clock: clock}), Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	if err := e.Load("demo", DemoRules); err != nil {
		t.Fatal(err)
	}
	all, rules = map[string]*fate{}, map[string]*fate{}
	count := func(to map[string]*fate, name string, allowed bool) {
		if to[name] == nil {
			to[name] = &fate{}
		}
		if allowed {
			to[name].allowed++
		} else {
			to[name].denied++
		}
	}
	script := NewScript(1)
	for at := time.Duration(0); at < Cycle; at += tick {
		now += weir.Micros(tick.Microseconds())
		calls := script.Next(at, tick)
		if most := 200 * tick.Seconds(); float64(len(calls)) > most {
			t.Fatalf("%d calls in %v", len(calls), tick)
		}
		for _, c := range calls {
			var v engine.Verdict
			ip := netip.MustParseAddr(c.IP)
			if err := e.Check(t.Context(), &rule.Request{IP: ip, User: c.User, Tier: c.Tier, Method: c.Method, Path: c.Path, Costs: c.Cost}, &v); err != nil {
				t.Fatal(err)
			}
			name := c.User
			if name == "" {
				name = c.IP
			}
			count(all, name, v.Allowed)
			for _, r := range v.Results {
				count(rules, r.Rule.ID, r.Allowed)
			}
		}
	}
	return all, rules
}

// Every rule allows some requests and denies others, so that there is something to look at.
func TestEveryRuleIsSeen(t *testing.T) {
	all, rules := play(t)
	for _, id := range []string{"everything", "plan", "login", "search", "search-trial", "chat-tokens"} {
		if f := rules[id]; f == nil || f.allowed == 0 || f.denied == 0 {
			t.Errorf("%s: %+v", id, f)
		}
	}
	share := func(name string) float64 {
		f := all[name]
		if f == nil {
			t.Fatalf("%s never calls", name)
		}
		return float64(f.denied) / float64(f.allowed+f.denied)
	}
	for _, name := range []string{"203.0.113.10", "203.0.113.11", "203.0.113.12", name(59), "203.0.113.66"} {
		if got := share(name); got < 0.7 {
			t.Errorf("%s: %.2f of its calls are denied", name, got)
		}
	}
	if got := share("healthcheck"); got != 0 {
		t.Errorf("the exempt client is denied %.2f of its calls", got)
	}
	allowed, denied := 0, 0
	for _, f := range all {
		allowed, denied = allowed+f.allowed, denied+f.denied
	}
	if got := float64(denied) / float64(allowed+denied); got < 0.05 || got > 0.35 {
		t.Errorf("%.2f of all calls are denied", got)
	}
}

func TestSameSeedSameScript(t *testing.T) {
	a, b := NewScript(7), NewScript(7)
	for at := time.Duration(0); at < time.Minute; at += tick {
		if x, y := a.Next(at, tick), b.Next(at, tick); !reflect.DeepEqual(x, y) {
			t.Fatalf("at %v: %v and %v", at, x, y)
		}
	}
}

// The player asks as the script says, settles what it reserved, and tells of every scene.
func TestPlay(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	paths, told := map[string]int{}, map[string]int{}
	done := func() bool { return len(told) == len(Scenes) && len(paths) == 3 }
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		if r.URL.Path == "/v1/reserve" {
			w.Write([]byte(`{"allowed": true, "hold": "` + strings.Repeat("a", 32) + `"}`))
		}
		mu.Lock()
		defer mu.Unlock()
		if paths[r.URL.Path]++; done() {
			cancel()
		}
	}))
	defer s.Close()
	(&DemoPlayer{URL: s.URL, Speed: 100, Begin: func(_ time.Duration, s DemoScene) {
		mu.Lock()
		defer mu.Unlock()
		if told[s.What]++; done() {
			cancel()
		}
	}}).Play(ctx)
	mu.Lock()
	defer mu.Unlock()
	if !done() {
		t.Errorf("asked %v, told %v", paths, told)
	}
}

// A scene is told of once in a cycle, however coarse the steps are.
func TestScenesAreToldOnce(t *testing.T) {
	for _, step := range []time.Duration{tick, 5 * time.Second, 19 * time.Second} {
		told := map[string]int{}
		p := DemoPlayer{Begin: func(at time.Duration, s DemoScene) {
			if told[s.What]++; (at-s.From)%Cycle != 0 {
				t.Errorf("%s is told at %v", s.What, at)
			}
		}}
		for at := time.Duration(0); at+step <= 3*Cycle; at += step {
			p.announce(at, at+step)
		}
		for _, s := range Scenes {
			if told[s.What] != 3 {
				t.Errorf("in steps of %v, %q is told %d times in three cycles", step, s.What, told[s.What])
			}
		}
	}
}
