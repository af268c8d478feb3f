package httpapi

import (
	"fmt"
	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/stats/archive"
	"reflect"
	"strings"
	"testing"
)

func TestRulesSeries(t *testing.T) {
	s := newStatsStand(t, Options{})
	s.traffic()
	stretch := fmt.Sprintf("from=%d&to=%d&step=5", begin.Unix(), begin.Unix()+10)
	times := []int64{begin.Unix(), begin.Unix() + 5}
	for _, c := range []struct {
		query string
		rules []stats.RuleValues
		other OtherValues
	}{
		{"", []stats.RuleValues{{Rule: "login", Total: 3, Values: []int64{3, 0}}}, OtherValues{0, []int64{0, 0}}},
		{"&by=allowed", []stats.RuleValues{{Rule: "api", Total: 11, Values: []int64{11, 0}}, {Rule: "login", Total: 2, Values: []int64{2, 0}}}, OtherValues{0, []int64{0, 0}}},
		{"&by=total&n=1", []stats.RuleValues{{Rule: "api", Total: 13, Values: []int64{11, 2}}}, OtherValues{6, []int64{5, 1}}},
		{"&by=shadow_denied", []stats.RuleValues{}, OtherValues{0, []int64{0, 0}}},
	} {
		var a RulesSeriesAnswer
		r := s.call("GET /v1/stats/rules?"+stretch+c.query, "").want(t, 200, &a)
		if a.Step != 5 || a.Local || !reflect.DeepEqual(a.Times, times) || !reflect.DeepEqual(a.Rules, c.rules) || !reflect.DeepEqual(a.Other, c.other) {
			t.Errorf("%s: %s", c.query, r.body)
		}
	}
	var a RulesSeriesAnswer
	if s.call("GET /v1/stats/rules", "").want(t, 200, &a); a.Step != 10 || len(a.Times) != 360 || len(a.Other.Values) != 360 {
		t.Errorf("by default: %d points of %d s", len(a.Times), a.Step)
	}
}

func TestClients(t *testing.T) {
	s := newStatsStand(t, Options{})
	s.traffic()
	var a ClientsAnswer
	r := s.call("GET /v1/stats/clients", "").want(t, 200, &a)
	if a.Step != 300 || a.By != "denied" || a.Total != 3 || a.Floor != 0 || a.Sampling != 1 || len(a.Clients) != 2 || a.To <= begin.Unix() {
		t.Fatalf("%s", r.body)
	}
	bob := a.Clients[0]
	if bob.Key != "ip:192.0.2.9" || bob.Count != 3 || bob.Error != 0 || !reflect.DeepEqual(bob.Rules, []stats.RuleCount{{Rule: "login", Count: 3}}) || bob.FirstAt != begin.Unix() || bob.LastAt != begin.Unix() {
		t.Errorf("%+v", bob)
	}
	sum := int64(0)
	for _, n := range bob.Values {
		sum += n
	}
	if sum != 3 || bob.Values[(begin.Unix()-a.From)/a.Step] != 3 || int64(len(bob.Values)) != (a.To-a.From)/a.Step {
		t.Errorf("%+v", bob)
	}
	// Who is denied by one rule is denied, whatever the others said, and it is named, with the mark that it has another key.
	if other := a.Clients[1]; other.Key != "user:bob" || other.Count != 3 || !reflect.DeepEqual(other.Rules, []stats.RuleCount{{Rule: "login", Count: 3, Other: true}}) {
		t.Errorf("%+v", other)
	}
	for query, keys := range map[string]string{
		"by=total":                      "user:alice ip:192.0.2.9 user:bob ",
		"by=total&prefix=user:b":        "user:bob ",
		"by=total&prefix=al":            "user:alice ",
		"by=total&prefix=ser":           "",
		"by=allowed&rule=api":           "user:alice user:bob ",
		"by=denied&rule=login&n=1":      "ip:192.0.2.9 ",
		"by=denied&rule=queue":          "",
		"by=total&prefix=192.0.2.&n=99": "ip:192.0.2.9 ",
	} {
		a = ClientsAnswer{}
		r := s.call("GET /v1/stats/clients?"+query, "").want(t, 200, &a)
		var got strings.Builder
		for _, c := range a.Clients {
			fmt.Fprint(&got, c.Key, " ")
		}
		if got.String() != keys {
			t.Errorf("%s: %s", query, r.body)
		}
	}
	// The last minutes are known by ten seconds, and what is older than a day not at all.
	if s.call(fmt.Sprintf("GET /v1/stats/clients?from=%d", begin.Unix()-60), "").want(t, 200, &a); a.Step != 10 || a.From != begin.Unix()-60 || len(a.Clients) != 2 {
		t.Errorf("%+v", a)
	}
	if s.call(fmt.Sprintf("GET /v1/stats/clients?from=%d", begin.Unix()-7*24*3600), "").want(t, 200, &a); a.Step != 3600 || a.From < begin.Unix()-25*3600 {
		t.Errorf("%+v", a)
	}
	if s.call(fmt.Sprintf("GET /v1/stats/clients?from=%d&to=%d", begin.Unix()-7*24*3600, begin.Unix()-6*24*3600), "").want(t, 200, &a); len(a.Clients) != 0 {
		t.Errorf("%+v", a)
	}
}

func TestClient(t *testing.T) {
	s := newStatsStand(t, Options{})
	s.traffic()
	var a ClientAnswer
	r := s.call("GET /v1/stats/client?key=ip:192.0.2.9", "").want(t, 200, &a)
	if a.Key != "ip:192.0.2.9" || a.Step != 3600 || a.Floor != 0 || len(a.Points) < 24 || int64(len(a.Points)) != (a.To-a.From)/a.Step {
		t.Fatalf("%s", r.body)
	}
	for i, p := range a.Points {
		want := ClientPoint{T: a.From + int64(i)*a.Step}
		if p.T == begin.Unix()-begin.Unix()%3600 {
			want.Allowed, want.Denied = 2, 3
		}
		if p != want {
			t.Errorf("point %d is %+v, want %+v", i, p, want)
		}
	}
	s.call("GET /v1/stats/client?key=user:nobody", "").want(t, 200, nil)
}

func TestDenials(t *testing.T) {
	s := newStatsStand(t, Options{})
	s.traffic()
	var a DenialsAnswer
	r := s.call("GET /v1/stats/denials?rule=login&n=1", "").want(t, 200, &a)
	want := archive.Denial{At: archive.Instant(begin.UnixMicro()), Key: "ip:192.0.2.9", Rule: "login", Method: "POST", Path: "/api/login", Address: "192.0.2.9", Cost: 1}
	if len(a.Denials) != 1 || a.Denials[0] != want || a.Local {
		t.Errorf("%s, want %+v", r.body, want)
	}
	s.call("GET /v1/stats/denials", "").want(t, 200, &a)
	var blocked, degraded int
	for i, d := range a.Denials {
		if d.Blocked && d.Key == "ip:203.0.113.66" && d.Rule == "" {
			blocked++
		}
		if d.Degraded {
			degraded++
		}
		if i > 0 && d.At > a.Denials[i-1].At {
			t.Errorf("%d is newer", i)
		}
	}
	if blocked != 1 || degraded != 1 || len(a.Denials) != 3 { // all of bob's are at the same time, and so are one
		t.Errorf("%+v", a.Denials)
	}
	if s.call("GET /v1/stats/denials?key=ip:203.0.113.66", "").want(t, 200, &a); len(a.Denials) != 1 {
		t.Errorf("%+v", a)
	}
	if r := s.call("GET /v1/stats/denials?key=user:nobody", "").want(t, 200, &a); !strings.Contains(string(r.body), `"denials":[]`) {
		t.Errorf("%s", r.body)
	}
}

func TestWarnings(t *testing.T) {
	s := newStatsStand(t, Options{})
	table, _ := s.engine.Rules()
	login := table.Find("login")
	quota := login.Limits("", "")[0]
	for i, percent := range []int{80, 95} {
		s.recorder.ObserveWarning(engine.Warning{Rule: login, Key: "ip:192.0.2.9", Compiled: quota, Threshold: percent, Used: int64(8 + i), Limit: 10, ResetAt: weir.Micros(begin.UnixMicro())})
	}
	s.traffic()
	var a WarningsAnswer
	r := s.call("GET /v1/stats/warnings?rule=login&n=1", "").want(t, 200, &a)
	at := archive.Instant(begin.UnixMicro())
	want := archive.Warning{At: at, Key: "ip:192.0.2.9", Rule: "login", Policy: quota.Limit().Rate(), Threshold: 95, Used: 9, Limit: 10, ResetAt: at}
	if len(a.Warnings) != 1 || a.Warnings[0] != want || a.Local {
		t.Errorf("%s, want %+v", r.body, want)
	}
	if s.call("GET /v1/stats/warnings?key=ip:192.0.2.9", "").want(t, 200, &a); len(a.Warnings) != 2 {
		t.Errorf("%+v", a)
	}
	for period, n := range map[string]int{"60": 2, "1m": 2, "61s": 0, "1h": 0} {
		if s.call("GET /v1/stats/warnings?min_period="+period, "").want(t, 200, &a); len(a.Warnings) != n {
			t.Errorf("%d of limits with at least %s, want %d", len(a.Warnings), period, n)
		}
	}
	if p := s.call("GET /v1/stats/warnings?min_period=soon", "").wantProblem(t, fault.BadField, "leave it out for all limits"); p.Field != "min_period" {
		t.Errorf("%+v", p)
	}
	if r := s.call("GET /v1/stats/warnings?key=user:nobody", "").want(t, 200, &a); !strings.Contains(string(r.body), `"warnings":[]`) {
		t.Errorf("%s", r.body)
	}
}

func TestUsage(t *testing.T) {
	s := newStatsStand(t, Options{})
	s.traffic()
	var a UsageAnswer
	r := s.call("GET /v1/stats/usage?rule=login", "").want(t, 200, &a)
	want := LimitUsage{Period: 60, Limit: 2, UnitUsage: stats.UnitUsage{Requests: 5, Denied: 3, P50: 1, P90: 2, P99: 2, Max: 2, Slots: []stats.UsageSlot{{From: 1, UpTo: 1, Count: 1}, {From: 2, UpTo: 2, Count: 1}}}}
	if a.Rule != "login" || a.Local || len(a.Limits) != 1 || !reflect.DeepEqual(a.Limits[0], want) || a.From >= a.To {
		t.Errorf("%s, want %+v", r.body, want)
	}
	if s.call("GET /v1/stats/usage?rule=api", "").want(t, 200, &a); len(a.Limits) != 2 || a.Limits[1].Tier != "pro" || a.Limits[1].Max != 6 {
		t.Errorf("%+v", a)
	}
	if s.call("GET /v1/stats/usage?rule=queue", "").want(t, 200, &a); len(a.Limits) != 0 {
		t.Errorf("%+v", a)
	}
}
