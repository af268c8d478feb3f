package httpapi

import (
	"bytes"
	"encoding/csv"
	"reflect"
	"strings"
	"testing"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/fault"
)

// The report is JSON or CSV, by the query or by Accept, and no spreadsheet takes what a client has chosen for a formula.
func TestSpend(t *testing.T) {
	var o Options
	remembered(t, &o)
	for range 3 {
		o.Stats.ObserveSpend(engine.Spend{Rule: "api", Key: "user:al", Model: "gpt", Currency: "usd", Units: 1})
	}
	o.Stats.ObserveSpend(engine.Spend{Rule: "api", Key: "user:al", Model: "gpt", Currency: "usd", Units: -1})
	if err := o.Stats.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := newStand(t, o)
	var got SpendAnswer
	s.call("GET /v1/spend?by=client,model,day&from=2026-01-01", "").want(t, 200, &got)
	want := []SpendLine{
		{Rule: "api", Client: "user:bob", Model: "=gpt", Day: "2026-01-01", Requests: 1, Currency: "usd", Micros: 1_500_000, Display: "$1.50", InputTokens: 7, OutputTokens: 9},
		{Rule: "api", Client: "user:al", Model: "gpt", Day: "2026-01-01", Requests: 3, Refunds: 1, Currency: "usd", Micros: 2, Display: "$0.000002"},
	}
	if !reflect.DeepEqual(got.Lines, want) || got.From != "2026-01-01" || got.To != "2026-01-01" || got.KeptDays != 90 {
		t.Errorf("%+v", got)
	}
	for _, c := range []struct{ query, accept string }{{"&format=csv", ""}, {"", "text/csv"}, {"", "text/html, text/csv;q=0.9, */*"}} {
		r := s.call("GET /v1/spend?by=client,model"+c.query, "", "Accept: "+c.accept).want(t, 200, nil)
		table, err := csv.NewReader(strings.NewReader(string(r.body))).ReadAll()
		if err != nil || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/csv") || len(table) != 3 {
			t.Fatalf("%v: %v, %s", c, err, r.body)
		}
		if row := strings.Join(table[1], "|"); row != "api||user:bob|'=gpt||1|0|usd|1500000|1.50|7|9" {
			t.Errorf("%s", row)
		}
	}
	if s.call("GET /v1/spend?n=1&by=client", "", "Accept: application/json").want(t, 200, &got); len(got.Lines) != 2 || got.Lines[1].Client != "(other)" || got.Lines[1].Micros != 2 {
		t.Errorf("one line: %+v", got.Lines)
	}
	for by, want := range map[string][3]string{
		"client": {"(other)", "", ""}, "model": {"", "(other)", ""}, "day,client": {"(other)", "", "(other)"}, "client,model,day": {"(other)", "(other)", "(other)"},
	} {
		var got SpendAnswer
		s.call("GET /v1/spend?n=1&by="+by, "").want(t, 200, &got)
		if l := got.Lines[1]; [3]string{l.Client, l.Model, l.Day} != want {
			t.Errorf("by %s: the others are %+v", by, l)
		}
		table, err := csv.NewReader(bytes.NewReader(s.call("GET /v1/spend?n=1&format=csv&by="+by, "").want(t, 200, nil).body)).ReadAll()
		if err != nil || [3]string(table[2][2:5]) != want {
			t.Errorf("by %s: %v, %v", by, table, err)
		}
	}
	if s.call("GET /v1/spend?rule=login", "").want(t, 200, &got); len(got.Lines) != 0 {
		t.Errorf("another rule: %+v", got.Lines)
	}
	for query, field := range map[string]string{"by=tier": "by", "from=2026-01-02&to=2026-01-01": "to", "from=never": "from", "n=0": "n", "format=xml": "format"} {
		s.call("GET /v1/spend?"+query, "").wantProblem(t, fault.BadField, field)
	}
}
