package rule_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir/rule"
)

func TestPenaltyString(t *testing.T) {
	for want, p := range map[string]rule.Penalty{
		"": {}, "15m after a denial": {For: 15 * time.Minute}, "1h after 3 denials within 1m": {For: time.Hour, After: 3, Within: time.Minute},
	} {
		if got := p.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A set that was not parsed is checked, too, and the limits of a penalty share nothing with
// those of rules.
func TestPenaltyLimits(t *testing.T) {
	key := []rule.Source{{Kind: rule.IP}}
	compile := func(p rule.Penalty) (*rule.Table, error) {
		return rule.Compile(&rule.Set{Rules: []rule.Rule{{ID: "a", Key: key, Quota: perMinute(1), Penalty: p}}}, rule.Options{})
	}
	for _, bad := range []rule.Penalty{
		{For: -1}, {For: time.Nanosecond}, {For: time.Hour, After: -1}, {For: time.Hour, After: 2}, {For: time.Hour, Within: time.Minute},
		{For: time.Hour, After: rule.MaxPenaltyAfter + 1, Within: time.Minute}, {After: 2, Within: time.Minute},
	} {
		if _, err := compile(bad); err == nil {
			t.Errorf("%+v compiled", bad)
		}
	}
	table, err := compile(rule.Penalty{For: time.Minute, After: 2, Within: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[uint64]bool{}
	for _, limit := range table.Find("a").Every() {
		kinds[limit.Kind()] = true
	}
	if len(kinds) != 3 {
		t.Errorf("%d kinds of limits, want 3", len(kinds))
	}
}
