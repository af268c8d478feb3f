package rule_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir/rule"
)

// A tier or an override has its own lease, or that of the rule.
func TestLeaseOfATier(t *testing.T) {
	set, problems := rule.Parse("rules.yaml", []byte(`rules:
  - {id: api, key: user, limit: 100/1m, lease: 1s, tiers: {pro: {limit: 200/1m, lease: 2s}, team: 300/1m, max: unlimited}, overrides: {"user:eve": {limit: 90/1m, lease: 90ms}}}
  - {id: some, key: user, limit: 100/1h, tiers: {pro: {limit: 200/1h, lease: 2s}, team: 50/1h, max: 70/1h}}
`))
	if set == nil || len(problems) > 0 {
		t.Fatal(problems)
	}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		id, key, tier string
		want          time.Duration
	}{
		{"api", "user:alice", "", time.Second}, {"api", "user:alice", "pro", 2 * time.Second}, {"api", "user:alice", "team", time.Second},
		{"api", "user:eve", "pro", 90 * time.Millisecond}, {"some", "user:alice", "max", 0}, {"some", "user:alice", "pro", 2 * time.Second},
	} {
		limits := table.Find(c.id).Limits(c.key, c.tier)
		if len(limits) != 1 || limits[0].Lease() != c.want {
			t.Errorf("%+v: %v", c, limits)
		}
	}
}
