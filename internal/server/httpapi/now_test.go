package httpapi

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/alert"
	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/stats/archive"
)

func (s *stand) present(t *testing.T) (a NowAnswer) {
	t.Helper()
	s.call("GET /v1/now", "").want(t, 200, &a)
	return a
}

// The most denied client comes with the rule and the endpoint of most of its denials, until somebody
// decides about it, or five minutes are over.
func TestNowDenied(t *testing.T) {
	s := newStatsStand(t, Options{})
	if a := s.present(t); !reflect.DeepEqual(a.Denied, &NowDenied{Window: 300}) {
		t.Fatalf("before any request: %+v", a.Denied)
	}
	s.traffic() // bob is denied three times
	want := &NowClient{archive.Entry{Key: "ip:192.0.2.9", Count: 3}, "login", &NowEndpoint{"POST", "/api/login"}, begin.Unix() - begin.Unix()%10}
	if a := s.present(t); !reflect.DeepEqual(a.Denied.Client, want) {
		t.Fatalf("%+v, want %+v", a.Denied.Client, want)
	}
	s.call("PUT /v1/block?ip=192.0.2.9", "").want(t, 200, nil)
	if a := s.present(t); a.Denied.Client != nil && a.Denied.Client.Key == want.Key {
		t.Errorf("a client on the block list: %+v", a.Denied.Client)
	}
	s.call("DELETE /v1/block?ip=192.0.2.9", "").want(t, 200, nil)
	if a := s.present(t); !reflect.DeepEqual(a.Denied.Client, want) {
		t.Errorf("%+v, want %+v", a.Denied.Client, want)
	}
	s.pass(320)
	if a := s.present(t); a.Denied.Client != nil {
		t.Errorf("five minutes later: %+v", a.Denied.Client)
	}
}

// A shadow rule denies nobody, and what it would have denied is not what the client is denied for.
func TestNowClient(t *testing.T) {
	who := stats.Client{Entry: archive.Entry{Key: "user:a\xff", Count: 9, Error: 1}, Last: begin, Rules: []stats.RuleCount{{Rule: "trial", Count: 9, Shadow: true}, {Rule: "api", Count: 5}}}
	got := clientNow(who, []archive.Denial{
		{Rule: "trial", Method: "PUT", Path: "/trial", Shadow: true}, {Rule: "trial", Method: "PUT", Path: "/trial", Shadow: true}, {Rule: "other", Method: "GET", Path: "/other"},
		{Rule: "api", Method: "GET", Path: "/new"}, {Rule: "api", Method: "POST", Path: "/often"}, {Rule: "api", Method: "POST", Path: "/often"}, {Rule: "api", Method: "GET", Path: "/new"},
	})
	if want := (&NowClient{archive.Entry{Key: "user:a\uFFFD", Count: 9, Error: 1}, "api", &NowEndpoint{"GET", "/new"}, begin.Unix()}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := clientNow(who, nil); got.Endpoint != nil || got.Rule != "api" {
		t.Errorf("without a sample: %+v", got)
	}
}

// What is broken is said with since when and why; what cannot be found out is marked.
func TestNowTrouble(t *testing.T) {
	var outage, broken error
	tell := func(err *error) func() (time.Time, error) {
		return func() (time.Time, error) {
			if *err == nil {
				return time.Time{}, nil
			}
			return begin, *err
		}
	}
	s := newStatsStand(t, Options{StoreKind: "redis", Outage: tell(&outage), NotLoaded: tell(&broken)})
	a := s.present(t)
	_, version := s.engine.Rules()
	if a.Store != (NowStore{"redis", StatsStore{Up: true}}) || a.Rules.Version != version || a.Rules.Count != strings.Count(testRules, "id: ") || a.Rules.NotLoaded != nil || a.At != begin.Unix() {
		t.Errorf("%+v", a)
	}
	outage, broken = errors.New("connection refused"), errors.New("line 3")
	s.archive.lost.Store(true)
	a = s.present(t)
	if a.Store.Up || *a.Store.UnavailableSince != begin.Unix() || a.Store.Error != "connection refused" || *a.Rules.NotLoaded != (NotLoaded{begin.Unix(), "line 3"}) || !a.Denied.Unavailable {
		t.Errorf("%+v, %+v", a, a.Denied)
	}
	if a := newStand(t, Options{}).present(t); a.Denied != nil || a.Alerts != nil || a.Store.Kind != "" {
		t.Errorf("without statistics: %+v", a)
	}
}

// An archive that does not answer delays the answer for a bounded time.
func TestNowDoesNotHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStatsStand(t, Options{})
		s.archive.slow.Store(true)
		before := time.Now()
		if a := s.present(t); !a.Denied.Unavailable || time.Since(before) != maxFirst {
			t.Errorf("%+v after %v", a.Denied, time.Since(before))
		}
	})
}

// Silenced alerts are counted apart, and no more than a few are named.
func TestNowAlerts(t *testing.T) {
	var all []alert.Alert
	for i := range 9 {
		all = append(all, alert.Alert{ID: string(rune('a' + i)), Silenced: i < 2, Summary: "\xff"})
	}
	a := alertsNow(all)
	if a.Active != 7 || a.Silenced != 2 || len(a.Latest) != maxNowAlerts || a.Latest[0].ID != "c" || a.Latest[0].Summary != "\uFFFD" {
		t.Errorf("%+v", a)
	}
	s := newStatsStand(t, Options{})
	s.alarm()
	if a := s.present(t); a.Alerts.Active == 0 || a.Alerts.Latest[0].Kind == "" {
		t.Errorf("%+v", a.Alerts)
	}
}
