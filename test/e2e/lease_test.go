package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit/testredis"
)

// Two instances decide most requests by leased units, without asking Redis, and together allow exactly the limit; so
// they do when one of them stops. One that is killed takes what it had with it, and nothing more is allowed.
func TestLeases(t *testing.T) {
	t.Parallel() // it waits until the instances have agreed on the format of leases, which takes more than a minute
	redis := testredis.Start(t)
	c := client(t)
	var instances []*process
	run := func() *process {
		dir := t.TempDir()
		rules := "rules:\n  - {id: api, key: user, algorithm: sliding_log, limit: 6000/1d, lease: 5s}\n  - {id: all, key: global, limit: 10000000/1h, lease: 5s}\n"
		if err := os.WriteFile(filepath.Join(dir, "rules.yaml"), []byte(rules), 0o600); err != nil {
			t.Fatal(err)
		}
		return start(t, dir, "serve", "--store", "redis://"+redis.Addr+"?timeout=10s", "--rules", "rules.yaml", "--http", "127.0.0.1:0")
	}
	for range 2 {
		instances = append(instances, run())
	}
	asks := func(p *process, request string) bool {
		a, err := try(c, "POST", p.URL+"/v1/check", request)
		return err == nil && a.Status == 200 && strings.HasPrefix(a.Text, `{"allowed":true`)
	}
	series := func(p *process, name string) int {
		match := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\S+)$`).FindStringSubmatch(ask(t, c, "GET", p.URL+"/metrics", "").Text)
		if match == nil {
			t.Fatalf("there is no series %s", name)
		}
		value, err := strconv.ParseFloat(match[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return int(value)
	}
	for deadline := time.Now().Add(5 * time.Minute); series(instances[0], "weir_lease_keys") == 0 || series(instances[1], "weir_lease_keys") == 0; {
		for _, p := range instances {
			for range 30 {
				asks(p, `{}`)
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing was leased")
		}
	}
	// offer sends so many requests of a user to instances in turns, and returns how many were allowed.
	offer := func(user string, n int, to ...*process) int64 {
		var allowed atomic.Int64
		var callers sync.WaitGroup
		for caller := range 8 {
			callers.Go(func() {
				for i := caller; i < n; i += 8 {
					if asks(to[i%len(to)], fmt.Sprintf(`{"user": %q}`, user)) {
						allowed.Add(1)
					}
				}
			})
		}
		callers.Wait()
		return allowed.Load()
	}
	before := series(instances[0], `weir_lease_checks_total{how="local"}`)
	allowed := offer("ann", 4000, instances...)
	if allowed != 4000 {
		t.Errorf("%d of 4000 requests within the limit were allowed", allowed)
	}
	if local := series(instances[0], `weir_lease_checks_total{how="local"}`) - before; local < 1000 {
		t.Errorf("%d of 2000 requests were decided locally", local)
	}
	if code := instances[1].stop(t); code != 0 {
		t.Errorf("it stopped with %d", code)
	}
	if allowed += offer("ann", 3000, instances[0]); allowed != 6000 {
		t.Errorf("%d requests were allowed under 6000, after one instance stopped", allowed)
	}
	other := run()
	allowed = offer("bob", 4000, instances[0], other)
	other.kill()
	held := 6000 - allowed
	allowed += offer("bob", 7000, instances[0])
	if allowed > 6000 || allowed < 6000-held {
		t.Errorf("%d requests were allowed under 6000, after one instance was killed", allowed)
	}
	t.Logf("with an instance killed, %d of 6000 requests were allowed", allowed)
}
