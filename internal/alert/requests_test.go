package alert

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/stats/archive"
	"github.com/weirhq/weir/store/memory"
)

// What limits deny is news if it is the requests of more than one client, or of many clients.
// A single attacker is none, also if it has an address here and a name there.
func TestDeniedRequests(t *testing.T) {
	const byUser = "rules: [{id: api, key: user, limit: 2/1s}]"
	const byBoth = "rules: [{id: net, key: ip, limit: 2/1s}, {id: api, key: user, limit: 2/1s}]"
	const apart = "rules: [{id: net, match: {path: /login}, key: ip, limit: 2/1s}, {id: api, match: {path: /api}, key: user, limit: 2/1s}]"
	const together = "rules: [{id: all, key: global, limit: 20/1s}]"
	type send func(who, n int, path string)
	others := func(n int) func(int, send) { // each comes every ten seconds
		return func(second int, send send) {
			for i := range n / 10 {
				send(1000+second%10*n/10+i, 1, "/api")
			}
		}
	}
	attackers := func(n, each, others int) func(int, send) {
		return func(second int, send send) {
			for i := range others / 10 {
				send(1000+second%10*others/10+i, 1, "/api")
			}
			for i := range n {
				send(i, each, "/api")
			}
		}
	}
	for _, c := range []struct {
		name, rules string
		second      func(second int, send send)
		want        string
	}{
		{"nobody", byUser, others(500), ""},
		{"a single attacker", byUser, attackers(1, 300, 500), ""},
		{"a single attacker by user and address", byBoth, attackers(1, 300, 500), ""},
		{"a single attacker, and few others", byUser, attackers(1, 300, 20), ""},
		{"a single attacker with an address and a name", apart, func(second int, send send) {
			others(500)(second, send)
			send(1, 100, "/api")
			send(1, 100, "/login")
		}, ""},
		{"a single attacker under a limit for all", together, attackers(1, 300, 100), ""},
		{"two equal attackers", byUser, attackers(2, 35, 500), "denied_requests "},
		{"two equal attackers by user and address", byBoth, attackers(2, 35, 500), "denied_requests "},
		{"40 attackers among 1,040 clients", byUser, attackers(40, 18, 1000), "denied_requests "},
		{"everybody", byUser, attackers(50, 4, 0), "denied denied_requests "},
		{"tiny traffic", byUser, func(second int, send send) {
			if second%15 == 0 {
				send(1, 8, "/api")
				send(2, 8, "/api")
			}
		}, ""},
	} {
		if c.want == "" && testkit.Race {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, err := stats.New(stats.Options{Archive: newMemory(t), Logger: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Fatal(err)
				}
				micros := func() weir.Micros { return weir.Micros(time.Now().UnixMicro()) }
				gate, err := engine.New(engine.Options{Store: memory.New(memory.Options{Clock: micros}), Observers: []engine.Observer{r}, Clock: micros})
				if err != nil {
					t.Fatal(err)
				}
				set, problems := rule.Parse("test.yaml", []byte(c.rules))
				if err := problems.Err(); err != nil {
					t.Fatal(err)
				}
				table, err := rule.Compile(set, rule.Options{})
				if err != nil {
					t.Fatal(err)
				}
				gate.Install(table, 1)
				w, err := New(Options{Source: r, Checks: []Check{{Kind: Denied}, {Kind: DeniedRequests}}, Logger: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Fatal(err)
				}
				defer inBackground(t, r.Run)()
				defer inBackground(t, w.Run)()
				var v engine.Verdict
				all, denied := 0, 0
				for second := range 150 {
					c.second(second, func(who, n int, path string) {
						for range n {
							req := rule.Request{User: fmt.Sprint("u", who), IP: netip.AddrFrom4([4]byte{192, 0, byte(who >> 8), byte(who)}), Path: path}
							if err := gate.Check(t.Context(), &req, &v); err != nil {
								t.Fatal(err)
							}
							if all++; !v.Allowed {
								denied++
							}
						}
					})
					time.Sleep(time.Second)
				}
				got, text := "", ""
				for _, a := range w.List().Active() {
					got += string(a.Kind) + " "
					text += a.Summary + " "
				}
				if got != c.want {
					t.Errorf("%d of %d denied: %q, want %q: %s", denied, all, got, c.want, text)
				}
				t.Logf("%d of %d denied: %s", denied, all, text)
			})
		})
	}
}

// ranking is what is known of denied clients, of which addresses are on the block list.
type ranking []stats.Client

func (r ranking) Clients(context.Context, stats.ClientsQuery) (*stats.Clients, error) {
	return &stats.Clients{Clients: r}, nil
}

func (ranking) Denials(context.Context, stats.LatestQuery) (*stats.Latest[archive.Denial], error) {
	return new(stats.Latest[archive.Denial]), nil
}

func (ranking) Listed(key string) bool { return strings.HasPrefix(key, "ip:") }

// A client of whom it is not known what denied it is not accused: it may be whom an attack was about.
func TestUnknownIsNotAccused(t *testing.T) {
	all := ranking{{Entry: archive.Entry{Key: "ip:192.0.2.1", Count: 90}}, {Entry: archive.Entry{Key: "attr:account:victim", Count: 3}}}
	if a := testkit.Must(Accuse(t.Context(), all, time.Time{}, time.Time{}))(t); a.Client != nil || len(a.Decided) != 1 {
		t.Errorf("%+v", a)
	}
	all[1].Rules = []stats.RuleCount{{Rule: "login-account", Count: 3}}
	if a := testkit.Must(Accuse(t.Context(), all, time.Time{}, time.Time{}))(t); a.Client == nil || a.Client.Key != "attr:account:victim" {
		t.Errorf("%+v", a)
	}
}

// Of keys of one kind, the requests add up; those of another kind may be the same ones.
func TestDecidedOf(t *testing.T) {
	a := Accused{Decided: []stats.Client{
		{Entry: archive.Entry{Key: "ip:192.0.2.1", Count: 50, Error: 1}}, {Entry: archive.Entry{Key: "ip:2001:db8::1", Count: 30}},
		{Entry: archive.Entry{Key: "attr:account:a:b", Count: 60}}, {Entry: archive.Entry{Key: "attr:device:d", Count: 60}}, {Entry: archive.Entry{Key: "ip:192.0.2.1|user:x", Count: 40}},
	}}
	if got := a.DecidedOf(Surely); got != 79 {
		t.Error(got)
	}
}

// Keys of one kind are different clients; those of two kinds may be one.
func TestSingle(t *testing.T) {
	for _, c := range []struct {
		keys      []archive.Entry
		all, want int64
	}{
		{nil, 0, 0},
		{[]archive.Entry{{Key: "user:a", Count: 50}, {Key: "user:b", Count: 50}}, 100, 50},
		{[]archive.Entry{{Key: "user:a", Count: 60}, {Key: "ip:x", Count: 40}}, 100, 100},
		{[]archive.Entry{{Key: "ip:x", Count: 90}, {Key: "user:a", Count: 50}, {Key: "user:b", Count: 40}}, 90, 90},
		{[]archive.Entry{{Key: "d|user=a", Count: 50}, {Key: "d|user=b", Count: 50}}, 100, 50},
		{[]archive.Entry{{Key: "a", Count: 50}, {Key: "b", Count: 50}}, 100, 50},
	} {
		if got := single(c.keys, c.all); got != c.want {
			t.Errorf("%v: %d, want %d", c.keys, got, c.want)
		}
	}
}
