package alert

import (
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/stats/archive"
)

// crowd is a second with so many clients, of whom so many are denied.
func crowd(requests, deniedRequests int64, clients, denied int) *archive.Frame {
	return traffic(requests-deniedRequests, func(f *archive.Frame) {
		f.Requests.Denied = deniedRequests
		*f.Rule(archive.Line{Rule: "api"}) = f.Requests
		*f.Rule(archive.Line{Rule: "login"}) = archive.Counts{Denied: 1}
		for i := range clients {
			f.Clients.Add(uint64(i+1)*0x9E3779B97F4A7C15, i < denied)
		}
	})
}

// One client that is held at its limit is no news, however much of the traffic it makes;
// that many are denied is. Where clients are not known, requests count.
func TestDeniedCountsClients(t *testing.T) {
	for _, c := range []struct {
		name  string
		frame *archive.Frame
		fires bool
	}{
		{"one abuser at 99 % of the traffic", crowd(1000, 990, 100, 1), false},
		{"an abuser among five clients", crowd(1000, 900, 5, 1), false},
		{"two of five, by address and by user", crowd(1000, 900, 5, 2), false},
		{"three of five", crowd(1000, 900, 5, 3), true},
		{"one client in ten", crowd(1000, 20, 200, 20), true},
		{"one client in forty", crowd(1000, 900, 200, 5), false},
		{"nobody is known, few requests", crowd(1000, 20, 0, 0), false},
		{"nobody is known, many requests", crowd(1000, 100, 0, 0), true},
		{"little traffic", crowd(1, 1, 50, 50), false},
	} {
		p := newPlayer(t, []Check{{Kind: Denied}})
		p.play(5*60, c.frame, nil)
		if fires := len(p.log) > 0; fires != c.fires {
			t.Errorf("%s: %v", c.name, p.log)
		}
		for _, a := range p.Firing() {
			if a.Rule != "api" {
				t.Errorf("%s: it names the rule %q", c.name, a.Rule)
			}
		}
	}
}

// What an alert says stays as it was when it fired; the value of now is apart.
func TestSummaryStays(t *testing.T) {
	p := newPlayer(t, []Check{{Kind: Denied}})
	p.play(3*60, crowd(1000, 500, 100, 50), nil)
	first := p.Firing()
	if len(first) != 1 || !strings.Contains(first[0].Summary, " %) are denied by limits; most denials are by the rule api.") || first[0].Value != first[0].Current {
		t.Fatalf("%+v", first)
	}
	p.play(3*60, crowd(1000, 990, 100, 99), nil)
	now := p.Firing()[0]
	if now.Summary != first[0].Summary || now.Value != first[0].Value || now.Current < 0.8 || !now.UpdatedAt.After(first[0].UpdatedAt) {
		t.Errorf("%+v, at first %+v", now, first[0])
	}
	if !now.QuietSince.IsZero() {
		t.Errorf("it holds: %+v", now)
	}
	var resolved []Alert
	quiet := time.Time{}
	for range 5 * 60 {
		resolved = append(resolved, p.Add(Sample{Time: p.at, Frame: crowd(1000, 0, 100, 0)})...)
		p.at = p.at.Add(1e9)
		for _, a := range p.Firing() {
			quiet = a.QuietSince
		}
	}
	if over := now.UpdatedAt.Add(time.Minute); quiet.Before(over) || quiet.After(over.Add(resolution)) || !resolved[0].EndsAt.Equal(quiet.Add(2*time.Minute)) || !resolved[0].QuietSince.IsZero() {
		t.Errorf("quiet since %v, %v after; %+v", quiet, quiet.Sub(now.UpdatedAt), resolved)
	}
	if len(resolved) != 1 || resolved[0].State != Resolved || resolved[0].Summary != first[0].Summary {
		t.Errorf("%+v", resolved)
	}
}

// Whoever is named is an address if one has about as many denials as the first.
func TestCulprit(t *testing.T) {
	for _, c := range []struct {
		ranked string
		want   int
	}{
		{"", 0},
		{"user:bob=9", 0},
		{"attr:account:alice=9 ip:192.0.2.1=9", 1},
		{"attr:account:alice=9 user:bob=8 ip:192.0.2.1=5 ip:192.0.2.2=5", 2},
		{"attr:account:alice=9 user:bob=8 ip:192.0.2.1=4", 0},
		{"ip:192.0.2.1=9 attr:account:alice=9", 0},
	} {
		var ranked []stats.Client
		for _, one := range strings.Fields(c.ranked) {
			key, n, _ := strings.Cut(one, "=")
			ranked = append(ranked, stats.Client{Entry: archive.Entry{Key: key, Count: int64(n[0] - '0')}})
		}
		if got := culprit(ranked); got != c.want {
			t.Errorf("%s: %d", c.ranked, got)
		}
	}
}
