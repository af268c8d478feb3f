package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit/testredis"
)

// leasing starts so many instances with rules, and returns when each has decided by leased units: they agree on the format
// of leases first, which takes more than a minute. The rules have a lease for a request on /warm.
func leasing(t *testing.T, c *http.Client, n int, rules, command string, args ...string) (all []*process) {
	t.Helper()
	for range n {
		dir := t.TempDir()
		write(t, dir, "rules.yaml", rules)
		all = append(all, start(t, dir, append([]string{command, "--rules", "rules.yaml", "--http", "127.0.0.1:0"}, args...)...))
	}
	deadline := time.Now().Add(5 * time.Minute)
	for _, p := range all {
		for series(t, c, p, localChecks) == 0 {
			for range 30 {
				allows(c, p, `{"path": "/warm"}`)
			}
			if time.Now().After(deadline) {
				t.Fatal("nothing was leased")
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	return all
}

const localChecks = `weir_lease_checks_total{how="local"}`

// allows is whether an instance allows a request.
func allows(c *http.Client, p *process, request string) bool {
	a, err := try(c, "POST", p.URL+"/v1/check", request)
	return err == nil && a.Status == 200 && a.Allowed
}

// series is the value of a series of an instance.
func series(t *testing.T, c *http.Client, p *process, name string) int {
	t.Helper()
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

// lost is how many units of a rule an instance had on lease when the lease ended: it stood still until then. They are charged,
// and nobody has them.
func lost(t *testing.T, c *http.Client, p *process, rule string) int {
	t.Helper()
	return series(t, c, p, fmt.Sprintf(`weir_lease_units_lost_total{rule=%q}`, rule))
}

// Two instances decide most requests by leased units, without asking Redis, and together allow exactly the limit; so
// they do when one of them stops. One that is killed takes what it had with it, and nothing more is allowed.
func TestLeases(t *testing.T) {
	t.Parallel() // see leasing
	redis := testredis.Start(t)
	c := client(t)
	rules := "rules:\n  - {id: api, key: user, algorithm: sliding_log, limit: 6000/1d, lease: 20s}\n  - {id: all, key: global, limit: 10000000/1h, lease: 5s}\n" +
		fmt.Sprintf("  - {id: quota, match: {path: /quota}, key: ip, algorithm: fixed_window, limit: 3000/month, starts: %d, lease: 20s}\n", (time.Now().Day()+13)%28+1)
	instances := leasing(t, c, 3, rules, "serve", "--store", "redis://"+redis.Addr+"?timeout=10s")
	victim := instances[2]
	asks := func(p *process, request string) bool { return allows(c, p, request) }
	series := func(p *process, name string) int { return series(t, c, p, name) }
	local := func(p *process) int { return series(p, localChecks) }
	lost := func(p *process, rule string) int64 { return int64(lost(t, c, p, rule)) }
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
	standing := func(key, rule string) (used, leased int64) {
		var a struct {
			Results []struct {
				Rule                     string
				Limit, Remaining, Leased int64
			}
		}
		if err := json.Unmarshal([]byte(ask(t, c, "GET", instances[0].URL+"/v1/keys?key="+key+"&rule="+rule, "").Text), &a); err != nil || len(a.Results) != 1 {
			t.Fatalf("%v, %+v", err, a)
		}
		r := a.Results[0]
		return r.Limit - r.Remaining - r.Leased, r.Leased
	}
	const limit = 6000
	before := local(instances[0])
	allowed := offer("ann", 4000, instances[:2]...)
	gone := lost(instances[1], "api")
	if all := allowed + gone + lost(instances[0], "api"); all < 4000 {
		t.Errorf("%d of 4000 requests within the limit were allowed, %d units lost", allowed, all-allowed)
	}
	if n := local(instances[0]) - before; n < 1000 {
		t.Errorf("%d of 2000 requests were decided locally", n)
	}
	if code := instances[1].stop(t); code != 0 {
		t.Errorf("it stopped with %d", code)
	}
	allowed += offer("ann", 3000, instances[0])
	for used := int64(0); used < limit; used, _ = standing("user:ann", "api") { // what the other gave back is denied as long as a denial is remembered
		allowed += offer("ann", 100, instances[0])
	}
	if gone += lost(instances[0], "api"); allowed > limit || allowed+gone < limit {
		t.Errorf("%d requests were allowed under %d, after one instance stopped; %d units were lost", allowed, limit, gone)
	}

	// One is killed after it has spent units of a monthly quota, and before it has said so.
	const request, quota = `{"ip": "192.0.2.1", "path": "/quota"}`, 3000
	allowed = 0
	spend := func(p *process, n int) {
		for range n {
			if asks(p, request) {
				allowed++
			}
		}
	}
	spent := func() (local, messages int) {
		return series(victim, `weir_lease_decisions_total{how="local",rule="quota"}`), series(victim, "weir_lease_messages_total")
	}
	spend(victim, 100)
	for tries := 0; ; tries++ {
		local, messages := spent()
		spend(victim, 5)
		if l, m := spent(); l == local+5 && m == messages {
			break
		}
		if tries == 200 {
			t.Fatal("it always reports what it has spent at once")
		}
	}
	victim.kill()
	used, leased := standing("ip:192.0.2.1", "quota")
	taken := used + leased - allowed // with it
	if taken < 0 {
		t.Errorf("%d of the quota are used and %d on lease; %d were allowed", used, leased, allowed)
	}
	spend(instances[0], quota)
	waitFor(t, "the end of the lease of the one that was killed", func() bool {
		spend(instances[0], 20)
		used, leased = standing("ip:192.0.2.1", "quota")
		return leased == 0 && used == quota
	})
	spend(instances[0], 100)
	if allowed > quota || allowed+taken+lost(instances[0], "quota") < quota {
		t.Errorf("%d requests were allowed under %d; %d were on lease when an instance was killed", allowed, quota, taken)
	}
	t.Logf("with an instance killed, %d of %d requests were allowed, and %d were on lease there", allowed, quota, taken)
}
