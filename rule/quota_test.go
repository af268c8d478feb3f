package rule

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weirhq/weir"
)

func TestParseQuota(t *testing.T) {
	for _, c := range []struct {
		limits string
		burst  int64
		want   string // the texts, or the field and some words
	}{
		{"500/1m", 0, "500/1m"}, {"5/minute 70/1h", 9, "5/1m 70/1h"}, {"unlimited", 0, "unlimited"},
		{"", 0, "limit: required"}, {"5", 0, `limit: "5" is not a rate`}, {"0/1m", 0, "limit: "}, {"unlimted", 0, `did you mean "unlimited"?`},
		{"unlimited", 5, "burst: an unlimited quota has no burst"}, {"5/1m unlimited", 0, "unlimited"}, {"5/1m 6/60s", 0, "limits: another limit has the same period 1m"},
		{strings.Repeat("5/1m ", 17), 0, "limits: 17 limits exceed the maximum of 16"}, {strings.Repeat("5", 2000), 0, "limit: it has 2000 bytes"},
	} {
		q, err := ParseQuota(strings.Fields(c.limits), c.burst, "", "")
		got := strings.Join(q.Texts(), " ")
		if err != nil {
			var invalid *weir.InvalidError
			if !errors.As(err, &invalid) {
				t.Errorf("%.40s: %T", c.limits, err)
			}
			got = err.Error()
		}
		if err == nil && got != c.want || !strings.Contains(got, c.want) || q.Burst != c.burst && err == nil {
			t.Errorf("%.40s: %+v, %s, want %s", c.limits, q, got, c.want)
		}
	}
}

// A quota has the bounds of the rule that it is for.
func TestCompileQuota(t *testing.T) {
	for _, c := range []struct{ rule, limit, want string }{
		{"{id: a, key: ip, limit: 5/1m}", "7/1m", "[7/1m]"},
		{"{id: a, key: ip, limit: 5/1m}", "unlimited", "[]"},
		{"{id: a, key: ip, limit: 5/1m, algorithm: sliding_log}", "9999999/1m", "limit: a sliding_log of 9999999 units"},
		{"{id: a, key: ip, limit: 5/1m, cost: 3}", "2/1m", "limit: a request costs 3, but at most 2 are allowed at once"},
	} {
		set, problems := Parse("", []byte("rules: ["+c.rule+"]"))
		if err := problems.Err(); err != nil {
			t.Fatal(err)
		}
		table, err := Compile(set, Options{})
		if err != nil {
			t.Fatal(err)
		}
		q, err := ParseQuota([]string{c.limit}, 0, "", "")
		if err != nil {
			t.Fatal(err)
		}
		limits, err := table.Find("a").Compile(q)
		got := fmt.Sprint(err)
		if err == nil {
			rates := []string{}
			for _, l := range limits {
				rates = append(rates, l.Limit().Rate())
				if l.Kind() != table.Find("a").Every()[0].Kind() {
					t.Errorf("%s: usage does not continue", c.limit)
				}
			}
			got = fmt.Sprint(rates)
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s with %s: %s, want %s", c.rule, c.limit, got, c.want)
		}
		if table.Find("b") != nil {
			t.Error("there is a rule b")
		}
	}
}
