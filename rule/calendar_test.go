package rule

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/weirhq/weir"
)

// What stands on the rule is for all its tiers and overrides, as far as it fits them.
func TestCalendarOfTiers(t *testing.T) {
	set, problems := Parse("", []byte(`
rules:
  - id: plans
    key: user
    limits: [10/1s, 10000/month]
    burst: 20
    zone: Asia/Shanghai
    starts: 15
    tiers:
      free: 100/day
      pro: {limits: [1000/day, 100000/month], starts: "06:00"}
      far: {limit: 5/month, zone: America/New_York}
      fast: 100/1s
    overrides:
      user:alice: 20000/month
      user:bob: {limit: 20000/month, starts: 31}
`))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	table, err := Compile(set, Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := table.rules[0]
	texts := func(q quota) string {
		var all []string
		for _, l := range q {
			all = append(all, l.Limit().String())
		}
		return strings.Join(all, ", ")
	}
	for name, c := range map[string]struct {
		got  quota
		want string
	}{
		"rule":  {e.quota, "token_bucket 10/1s burst 20, fixed_window 10000/month zone Asia/Shanghai starts 15"},
		"free":  {e.tiers["free"].quota, "fixed_window 100/1d zone Asia/Shanghai"},
		"pro":   {e.tiers["pro"].quota, "fixed_window 1000/1d zone Asia/Shanghai starts 06:00, fixed_window 100000/month zone Asia/Shanghai starts 15"},
		"far":   {e.tiers["far"].quota, "fixed_window 5/month zone America/New_York starts 15"},
		"fast":  {e.tiers["fast"].quota, "token_bucket 100/1s"},
		"alice": {e.overrides["user:alice"].quota, "fixed_window 20000/month zone Asia/Shanghai starts 15"},
		"bob":   {e.overrides["user:bob"].quota, "fixed_window 20000/month zone Asia/Shanghai starts 31"},
	} {
		if got := texts(c.got); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	if e.quota[1].Kind() != e.overrides["user:bob"].quota[0].Kind() {
		t.Error("another billing day is another kind, and would start from zero")
	}
	q, err := ParseQuota([]string{"50000/month"}, 0, "", "31")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := e.Compile(q); err != nil || texts(got) != "fixed_window 50000/month zone Asia/Shanghai starts 31" {
		t.Errorf("a temporary override: %s, %v", texts(got), err)
	}
}

func TestParseQuotaOfCalendar(t *testing.T) {
	for _, c := range []struct{ limit, zone, starts, want string }{
		{"100/month", "Mars/Olympus", "", "zone: \"Mars/Olympus\" is not in the time zone database"},
		{"100/1m", "UTC", "", "zone: it has no effect, because 1m is not a period of the calendar"},
		{"100/month", "", "monday", `starts: "monday" is not where a month can start; write a day of the month`},
		{"100/month", "", strings.Repeat("9", 1000), "starts: "},
		{"100/1m", "", "15", "starts"},
		{"unlimited", "UTC", "", "limit: an unlimited quota has no periods; remove zone and starts"},
	} {
		if q, err := ParseQuota([]string{c.limit}, 0, c.zone, c.starts); err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 400 {
			t.Errorf("%+v: %+v, %v", c, q, err)
		}
	}
}

// A set that was not parsed is checked as well.
func TestCompileOfBadCalendars(t *testing.T) {
	rate := []Rate{{N: 5, Period: weir.Month}}
	for want, r := range map[string]Rule{
		"zone: ":      {Quota: Quota{Rates: rate, Zone: "Mars/Olympus"}},
		"algorithm: ": {Quota: Quota{Rates: rate}, Algorithm: weir.SlidingWindow},
		"burst: ":     {Quota: Quota{Rates: rate, Burst: 3}},
	} {
		r.ID, r.Key = "r", []Source{{Kind: User}}
		if _, err := Compile(&Set{Rules: []Rule{r}}, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	r := Rule{ID: "r", Key: []Source{{Kind: User}}, Quota: Quota{Rates: []Rate{{N: 5, Period: 24 * time.Hour}}, Zone: "Europe/Berlin"}}
	if _, err := Compile(&Set{Rules: []Rule{r}}, Options{}); err != nil {
		t.Error(err)
	}
}
