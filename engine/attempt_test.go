package engine_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	"pgregory.net/rapid"
)

// attempt is a request of a user from an address.
func attempt(user, ip string) rule.Request {
	return rule.Request{User: user, IP: netip.MustParseAddr(ip)}
}

// The numbers of the example: attempts count, and one that the address denies leaves the user untouched.
func TestAttempts(t *testing.T) {
	onStores(t, `
rules:
  - {id: by-ip, key: ip, algorithm: sliding_log, limit: 3/5s, count_denied: true, deny: {code: 10007}}
  - {id: by-user, key: user, algorithm: sliding_log, limit: 5/1m, count_denied: unless_denied_earlier, deny: {code: 10008}}
`, func(t *testing.T, b *holdBench) {
		begin := b.now.Load()
		for _, step := range []struct {
			at       time.Duration
			user, ip string
			want     string // code, and what remains of each
		}{
			{0, "a", "192.0.2.1", "0 2 4"},
			{2 * time.Second, "a", "192.0.2.1", "0 1 3"},
			{3 * time.Second, "a", "192.0.2.1", "0 0 2"},
			{4 * time.Second, "a", "192.0.2.1", "10007 0 2"},           // the fourth
			{5100 * time.Millisecond, "a", "192.0.2.1", "10007 0 2"},   // again: three of the last 5 s, and itself
			{5200 * time.Millisecond, "a", "192.0.2.2", "0 2 1"},       //
			{5300 * time.Millisecond, "a", "192.0.2.2", "0 1 0"},       //
			{5400 * time.Millisecond, "a", "192.0.2.2", "10008 0 0"},   // the sixth of the user
			{5500 * time.Millisecond, "a", "192.0.2.2", "10007 0 0"},   // both deny; it counts for the address only
			{10600 * time.Millisecond, "a", "192.0.2.2", "10008 2 0"},  // the seventh
			{62_500 * time.Millisecond, "a", "192.0.2.3", "10008 2 0"}, // 3 s, 5.2, 5.3, 5.4, 10.6, and itself
			{65_201 * time.Millisecond, "a", "192.0.2.3", "0 1 0"},     // 5.3, 5.4, 10.6, 62.5, and itself
		} {
			b.now.Store(begin + step.at.Microseconds())
			var v engine.Verdict
			req := attempt(step.user, step.ip)
			testkit.OK(t, b.Check(t.Context(), &req, &v))
			got := fmt.Sprint(v.Answer().Code, " ", v.Results[0].Remaining, " ", v.Results[1].Remaining)
			if got != step.want {
				t.Errorf("%v: %s, want %s", step.at, got, step.want)
			}
		}
	})
}

// If no earlier rule denies, the answer is that of a rule with count_denied: true, whatever later rules say.
func TestAttemptsAnswer(t *testing.T) {
	for _, algorithm := range []string{"fixed_window", "sliding_window", "sliding_buckets", "sliding_log"} {
		said := map[string][]weir.Decision{}
		for _, word := range []string{"true", "unless_denied_earlier"} {
			onStores(t, `
rules:
  - {id: a, key: user, algorithm: `+algorithm+`, limits: [3/1m, 9/1h], count_denied: `+word+`}
  - {id: b, key: ip, algorithm: fixed_window, limit: 1/1d}
`, func(t *testing.T, b *holdBench) {
				for i := range 16 {
					b.now.Add(11_000_000)
					req, v := attempt("alice", "192.0.2."+fmt.Sprint(i/2)), new(engine.Verdict)
					testkit.OK(t, b.Check(t.Context(), &req, v))
					for _, r := range v.Results[:2] {
						r.Receipt = 0
						said[t.Name()] = append(said[t.Name()], r.Decision)
					}
				}
			})
		}
		if len(said) != 4 {
			t.Fatal(said)
		}
		var first []weir.Decision
		for _, decisions := range said {
			if first == nil {
				first = decisions
			}
			for i := range decisions {
				if decisions[i] != first[i] {
					t.Errorf("%s, %d: %+v and %+v", algorithm, i, decisions[i], first[i])
				}
			}
		}
	}
}

// A rule may be in shadow, and the store unavailable.
func TestAttemptsElsewhere(t *testing.T) {
	const rules = `
rules:
  - {id: first, key: user, algorithm: sliding_log, limit: 1/1h, on_failure: local}
  - {id: second, key: ip, algorithm: sliding_log, limit: 3/1h, count_denied: unless_denied_earlier, on_failure: local%s}
  - {id: third, key: ip, algorithm: sliding_log, limit: 9/1h, count_denied: unless_denied_earlier, mode: shadow}
`
	for _, c := range []struct {
		name, shadow string
		lost         bool
		want         string // whether it is allowed, and what remains of the second and the third
	}{
		{"enforced", "", false, "+2/8 -2/8 +1/7 +0/6 -0/6 -0/6 -0/7"},
		{"shadow", ", mode: shadow", false, "+2/8 -2/8 +1/7 +0/6 +0/5 -0/5 +0/5"},
		{"local", "", true, "+2/0 -2/0 +1/0 +0/0 -0/0 -0/0 -0/0"},
	} {
		onStores(t, fmt.Sprintf(rules, c.shadow), func(t *testing.T, b *holdBench) {
			b.store.lost.Store(c.lost)
			var got []string
			begin := b.now.Load()
			for i, user := range []string{"a", "a", "b", "c", "d", "a", "e"} { // the first attempt is over when e comes
				b.now.Store(begin + []int64{0, 10, 20, 30, 40, 50, 61}[i]*time.Minute.Microseconds())
				req := attempt(user, "192.0.2.1")
				v := new(engine.Verdict)
				if i%2 == 0 {
					testkit.OK(t, b.Check(t.Context(), &req, v))
				} else {
					v = b.reserve(t, req, time.Minute)
				}
				got = append(got, map[bool]string{true: "+", false: "-"}[v.Allowed]+fmt.Sprint(v.Results[1].Remaining, "/", v.Results[2].Remaining))
			}
			if got := strings.Join(got, " "); got != c.want {
				t.Errorf("%s: %s, want %s", c.name, got, c.want)
			}
		})
	}
}

// In a cluster, address and user are on different slots.
func TestAttemptsInACluster(t *testing.T) {
	b := newPartialBench(t)
	e := b.engine(t, `
rules:
  - {id: address, key: ip, algorithm: sliding_log, limit: 2/1d, count_denied: true}
  - {id: person, key: user, algorithm: sliding_log, limit: 3/1d, count_denied: unless_denied_earlier}
`)
	first, second := b.request(), b.request()
	for i, step := range []struct {
		req  rule.Request
		want string
	}{
		{first, "true 1 2"}, {first, "true 0 1"}, {first, "false 0 1"}, {second, "true 1 0"}, {second, "false 0 0"}, {second, "false 0 0"},
	} {
		var v engine.Verdict
		testkit.OK(t, e.Check(t.Context(), &step.req, &v))
		if got := fmt.Sprint(v.Allowed, " ", v.Results[0].Remaining, " ", v.Results[1].Remaining); got != step.want || v.Degraded != nil {
			t.Errorf("%d: %s, want %s; %v", i, got, step.want, v.Degraded)
		}
	}
}

// The engine does what a plain model does: each rule has the times of what it has counted.
func TestAttemptsModel(t *testing.T) {
	words := []string{"false", "true", "unless_denied_earlier"}
	rapid.Check(t, func(rt *rapid.T) {
		text, limits, counts := "rules:\n", []int{}, []string{}
		for i := range rapid.IntRange(1, 4).Draw(rt, "rules") {
			n, word := rapid.IntRange(1, 3).Draw(rt, "limit"), rapid.SampledFrom(words).Draw(rt, "count_denied")
			limits, counts = append(limits, n), append(counts, word)
			text += fmt.Sprintf("  - {id: r%d, key: 'header:H%d', algorithm: sliding_log, limit: %d/10s, count_denied: %s}\n", i, i, n, word)
		}
		b := newBench(t, text, nil)
		counted := map[string][]int64{} // times, by rule and client
		for range rapid.IntRange(1, 30).Draw(rt, "requests") {
			b.pass(time.Duration(rapid.IntRange(0, 6).Draw(rt, "after")) * time.Second)
			now, h, used, first := b.now.Load(), headers{}, make([]int, len(limits)), len(limits)
			for i := range limits {
				h[fmt.Sprint("H", i)] = rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "client")
				for _, at := range counted[fmt.Sprint(i, h[fmt.Sprint("H", i)])] {
					if at > now-10_000_000 {
						used[i]++
					}
				}
				if used[i] >= limits[i] {
					first = min(first, i)
				}
			}
			v := b.check(t, rule.Request{Values: h})
			if denied := first < len(limits); v.Allowed == denied {
				rt.Fatalf("%s%v: allowed is %v", text, h, v.Allowed)
			}
			for i := range limits {
				if first == len(limits) || counts[i] == "true" || counts[i] == words[2] && i <= first {
					key := fmt.Sprint(i, h[fmt.Sprint("H", i)])
					counted[key] = append(counted[key], now)
					used[i]++
				}
				if left := max(0, limits[i]-used[i]); v.Results[i].Remaining != int64(left) {
					rt.Fatalf("%s%v: %d remain of the rule %d, want %d", text, h, v.Results[i].Remaining, i, left)
				}
			}
		}
	})
}
