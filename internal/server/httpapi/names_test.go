package httpapi

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/fault"
)

// What is counted is listed with its values, and with how full the store is if that has a maximum.
func TestNames(t *testing.T) {
	for name, open := range map[string]func(testing.TB, Options) *kept{"memory": keptInMemory, "redis": keptInRedis} {
		t.Run(name, func(t *testing.T) {
			full := CounterUsage{Entries: 5, Capacity: 7, Rejected: 1}
			s := open(t, Options{CounterUsage: func() CounterUsage { return full }})
			if r := s.call("GET /v1/counters/names", "").want(t, 200, nil); !strings.Contains(string(r.body), `"names":[]`) {
				t.Errorf("%s", r.body)
			}
			s.call("POST /v1/counters/add", `{"add":[{"name":"views","by":2.5},{"name":"<b>","group":"g","window":"day","zone":"Asia/Shanghai"},{"name":"users","distinct":true,"members":["a","b"]}]}`).want(t, 200, nil)
			s.call("POST /v1/hot/hit", `{"list":{"name":"goods","window_s":60,"threshold":3,"cool":2},"items":["lamp"]}`).want(t, 200, nil)
			var a NamesAnswer
			r := s.call("GET /v1/counters/names", "").want(t, 200, &a)
			one, two, many := counter.One, counter.Whole(2), counter.Amount(2_500_000)
			want := []NamedAnswer{
				{Kind: "counter", Name: "<b>", Group: "g", Window: counter.Day, Zone: "Asia/Shanghai", Value: &one},
				{Kind: "counter", Name: "views", Value: &many},
				{Kind: "distinct", Name: "users", Value: &two},
				{Kind: "hot", Name: "goods", SlidingS: 60, Threshold: 3, Cool: 2},
			}
			if len(a.Names) != len(want) || a.More || *a.Usage != full {
				t.Fatalf("%s", r.body)
			}
			for i, w := range want {
				got := a.Names[i]
				if (got.Value == nil) != (w.Value == nil) || got.Value != nil && *got.Value != *w.Value {
					t.Errorf("%+v has another value than %+v", got, w)
				}
				if got.Value, w.Value = nil, nil; got != w {
					t.Errorf("%+v, want %+v", got, w)
				}
			}
			if s.call("GET /v1/counters/names?n=1", "").want(t, 200, &a); len(a.Names) != 1 || !a.More {
				t.Errorf("%+v", a)
			}
			for _, n := range []string{"0", "257", "x"} {
				if p := s.call("GET /v1/counters/names?n="+n, "").wantProblem(t, fault.BadField); p.Field != "n" {
					t.Errorf("%+v", p)
				}
			}
		})
	}
}
