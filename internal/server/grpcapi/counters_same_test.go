package grpcapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/counter"
	countermemory "github.com/weirhq/weir/counter/memory"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/server/httpapi"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
)

// Counters are answered as over HTTP: two stores with the same clock, one behind each, are
// asked the same.
func TestCountersSameAsHTTP(t *testing.T) {
	s := newPipe(t, Options{})
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		s.options.Counters = countermemory.New(countermemory.Options{Clock: s.micros}) // no call is in flight
		h, err := httpapi.New(httpapi.Options{
			Service: manage.Service{Engine: s.engine, Rules: s.rules, Counters: countermemory.New(countermemory.Options{Clock: s.micros})}, Clock: s.time,
		})
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 15).Draw(t, "calls") {
			s.move(time.Duration(rapid.Int64Range(0, 20*86400).Draw(t, "s")) * time.Second)
			key := drawKey(t)
			q := url.Values{"name": {key.Name}, "group": {key.Group}, "window": {windowName(key)}, "zone": {key.Zone}}
			n := rapid.SampledFrom([]int32{0, 1, 3, 61, 400}).Draw(t, "n")
			if n != 0 {
				q.Set("n", fmt.Sprint(n))
			}
			named := httpapi.CounterKey{Name: key.Name, Group: key.Group, Window: counter.Window(key.Window), Zone: key.Zone, Distinct: key.Distinct}
			call := rapid.SampledFrom([]string{"add", "add", "add", "set", "reset", "get", "history", "observe", "observe", "distributions"}).Draw(t, "call")
			var got []string
			var want any
			switch call {
			case "add":
				d := &pb.CounterDelta{Key: key, By: drawAmount(t)}
				if key.Distinct != (rapid.IntRange(0, 9).Draw(t, "mistaken") == 0) {
					d.By, d.Members = "", rapid.SliceOfN(rapid.SampledFrom([]string{"alice", "bob", ""}), 0, 3).Draw(t, "members")
				}
				var a *pb.CountersResponse
				a, err = s.counters.AddCounters(t.Context(), &pb.AddCountersRequest{Add: []*pb.CounterDelta{d}})
				want, got = &httpapi.CountersAnswer{}, a.GetValues()
				delta := map[string]any{"members": d.Members}
				if d.By != "" {
					delta["by"] = json.Number(d.By)
				}
				err = same(t, h, "POST", "/v1/counters/add", entry("add", named, delta), want, err)
			case "set":
				var a *pb.CountersResponse
				value := drawAmount(t)
				a, err = s.counters.SetCounters(t.Context(), &pb.SetCountersRequest{Set: []*pb.CounterSetting{{Key: key, Value: value}}})
				want, got = &httpapi.SetAnswer{}, a.GetValues()
				fields := map[string]any{}
				if value != "" {
					fields["value"] = json.Number(value)
				}
				err = same(t, h, "POST", "/v1/counters/set", entry("set", named, fields), want, err)
			case "reset":
				var a *pb.CountersResponse
				a, err = s.counters.ResetCounters(t.Context(), &pb.ResetCountersRequest{Keys: []*pb.CounterKey{key}})
				want, got = &httpapi.CountersAnswer{}, a.GetValues()
				err = same(t, h, "POST", "/v1/counters/reset", entry("reset", named, nil), want, err)
			case "get":
				var a *pb.CountersResponse
				a, err = s.counters.GetCounters(t.Context(), &pb.GetCountersRequest{Keys: []*pb.CounterKey{key}})
				want, got = &httpapi.CountersAnswer{}, a.GetValues()
				q.Del("n")
				q.Set("distinct", fmt.Sprint(key.Distinct))
				err = same(t, h, "GET", "/v1/counters?"+q.Encode(), nil, want, err)
			case "history":
				var a *pb.GetCounterHistoryResponse
				a, err = s.counters.GetCounterHistory(t.Context(), &pb.GetCounterHistoryRequest{Keys: []*pb.CounterKey{key}, N: n})
				want = &httpapi.CounterHistoryAnswer{}
				for _, c := range a.GetCounters() {
					for _, p := range c.Points {
						got = append(got, start(p.Start != nil, p.Start.AsTime())+p.Value)
					}
				}
				q.Set("distinct", fmt.Sprint(key.Distinct))
				err = same(t, h, "GET", "/v1/counters/history?"+q.Encode(), nil, want, err)
			case "observe":
				key.Distinct = false
				values := rapid.SliceOfN(rapid.SampledFrom([]float64{0, 0.5, 12.25, 1e9, -1, 1e13}), 0, 3).Draw(t, "values")
				_, err = s.counters.Observe(t.Context(), &pb.ObserveRequest{Observe: []*pb.Sample{{Key: key, Values: values}}})
				named.Distinct = false
				err = same(t, h, "POST", "/v1/distributions/observe", entry("observe", named, map[string]any{"values": values}), &httpapi.ObserveAnswer{}, err)
			case "distributions":
				key.Distinct = false
				var a *pb.GetDistributionsResponse
				a, err = s.counters.GetDistributions(t.Context(), &pb.GetDistributionsRequest{Keys: []*pb.CounterKey{key}, N: n})
				want = &httpapi.DistributionsAnswer{}
				for _, d := range a.GetDistributions() {
					for _, p := range append(d.Points, d.Merged) {
						got = append(got, start(p.Start != nil, p.Start.AsTime())+fmt.Sprint(p.Count, p.Sum, p.Mean, p.Min, p.Max, p.P50, p.P95, p.P99))
					}
				}
				err = same(t, h, "GET", "/v1/distributions?"+q.Encode(), nil, want, err)
			}
			if err != nil {
				seen["mistake"]++
				continue
			}
			seen[call]++
			if wanted := figuresOf(want); fmt.Sprint(got) != fmt.Sprint(wanted) {
				t.Fatalf("%s of %v: HTTP says %v, and gRPC %v", call, key, wanted, got)
			}
		}
	})
	for _, what := range []string{"mistake", "add", "set", "reset", "get", "history", "observe", "distributions"} {
		if seen[what] == 0 {
			t.Errorf("there was no %s, so that nothing is known about it: %v", what, seen)
		}
	}
}

func drawKey(t *rapid.T) *pb.CounterKey {
	return &pb.CounterKey{
		Name:     rapid.SampledFrom([]string{"a", "b", "b", "ü", ""}).Draw(t, "name"),
		Group:    rapid.SampledFrom([]string{"", "g"}).Draw(t, "group"),
		Window:   pb.Window(rapid.IntRange(0, 6).Draw(t, "window")),
		Zone:     rapid.SampledFrom([]string{"", "UTC", "Asia/Shanghai", "America/New_York", "Mars/North"}).Draw(t, "zone"),
		Distinct: rapid.IntRange(0, 2).Draw(t, "distinct") == 0,
	}
}

func drawAmount(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "1", "0.1", "-2.5", "9000000000000", "8999999999999.999999", "9000000000001", "0.0000001"}).Draw(t, "amount")
}

func windowName(k *pb.CounterKey) string {
	return strings.ToLower(strings.TrimPrefix(k.Window.String(), "WINDOW_"))
}

// entry is a body with a list of one counter.
func entry(list string, key httpapi.CounterKey, fields map[string]any) map[string]any {
	one := map[string]any{"name": key.Name, "group": key.Group, "window": key.Window, "zone": key.Zone}
	if key.Distinct {
		one["distinct"] = true
	}
	for name, value := range fields {
		one[name] = value
	}
	return map[string]any{list: []any{one}}
}

// same asks over HTTP, and fails if only one of the two is an error, or if they have other
// reasons. Of several mistakes, each may name another one.
func same(t *rapid.T, h http.Handler, method, path string, body, into any, err error) error {
	var text bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&text).Encode(body); err != nil {
			t.Fatal(err)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, "http://localhost"+path, &text))
	if w.Code == http.StatusOK {
		if err != nil {
			t.Fatalf("%s %s: HTTP says %s, and gRPC %v", path, text.String(), w.Body, err)
		}
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			t.Fatal(err)
		}
		return nil
	}
	problem := new(httpapi.Problem)
	if err := json.Unmarshal(w.Body.Bytes(), problem); err != nil || problem == nil {
		t.Fatal(err)
	}
	reason := strings.ToUpper(strings.ReplaceAll(strings.TrimPrefix(problem.Type, "urn:weir:problem:"), "-", "_"))
	if err == nil || reason != read(err).info.GetReason() {
		t.Fatalf("%s %s: HTTP says %+v, and gRPC %v", path, text.String(), problem, err)
	}
	return err
}

// start is when a window begins.
func start(has bool, at time.Time) string {
	if !has {
		return ""
	}
	return at.UTC().Format(time.RFC3339) + " "
}

// figuresOf is what an answer of HTTP has, as a list of texts.
func figuresOf(answer any) (all []string) {
	switch a := answer.(type) {
	case *httpapi.CountersAnswer:
		for _, c := range a.Counters {
			all = append(all, c.Value.String())
		}
	case *httpapi.SetAnswer:
		for _, c := range a.Counters {
			all = append(all, c.Previous.String())
		}
	case *httpapi.CounterHistoryAnswer:
		for _, c := range a.Counters {
			for _, p := range c.Points {
				all = append(all, start(!p.Start.IsZero(), p.Start)+p.Amount.String())
			}
		}
	case *httpapi.DistributionsAnswer:
		for _, d := range a.Distributions {
			for _, p := range append(d.Points, d.Merged) {
				line := start(!p.Start.IsZero(), p.Start)
				figures := []any{p.Count}
				for _, amount := range []*counter.Amount{p.Sum, p.Mean, p.Min, p.Max, p.P50, p.P95, p.P99} {
					text := ""
					if amount != nil {
						text = amount.String()
					}
					figures = append(figures, text)
				}
				all = append(all, line+fmt.Sprint(figures...))
			}
		}
	}
	return all
}
