package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/weirhq/weir/internal/testkit/testredis"
)

// The same limits hold in memory and in Redis, and over two servers on one Redis.
func TestServe(t *testing.T) {
	redis := testredis.Start(t)
	for name, args := range map[string][]string{
		"memory":         {},
		"redis":          {"--store", "redis://" + redis.Addr + "?timeout=5s&prefix=a:"},
		"rules in redis": {"--store", "redis://" + redis.Addr + "?timeout=5s&prefix=b:", "--rules", "redis"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, "rules.yaml", perUser)
			args := append([]string{"serve", "--http", "127.0.0.1:0"}, args...)
			servers := []*process{start(t, dir, args...)}
			if name != "memory" {
				servers = append(servers, start(t, dir, args...))
			}
			c := client(t)
			if name == "rules in redis" {
				if a := ask(t, c, "PUT", servers[0].URL+"/v1/rules", perUser, "If-Match", "*"); a.Status != http.StatusOK {
					t.Fatalf("%d %s", a.Status, a.Text)
				}
				waitFor(t, "the rules in force", func() bool { // of which the other one only hears
					return ask(t, c, "POST", servers[1].URL+"/v1/check", `{"user": "bob", "peek": true}`).Rule == "api"
				})
			}
			for i := range 8 {
				a := ask(t, c, "POST", servers[i%len(servers)].URL+"/v1/check", alice)
				if a.Status != http.StatusOK || a.Allowed != (i < 5) || a.Degraded {
					t.Errorf("request %d: %d %s", i+1, a.Status, a.Text)
				}
			}
			for _, p := range servers {
				if code := p.stop(t); code != 0 {
					t.Errorf("it ended with %d:\n%s", code, p.log)
				}
			}
		})
	}
}

// Rules that change under load are in force immediately, however they are changed, and
// no request is lost.
func TestRulesChangeUnderTraffic(t *testing.T) {
	dir := t.TempDir()
	path := write(t, dir, "rules.yaml", perUser)
	p := start(t, dir, "serve", "--http", "127.0.0.1:0")
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			c := client(t)
			for !stop.Load() {
				if a, err := try(c, "POST", p.URL+"/v1/check", alice); err != nil || a.Status != http.StatusOK {
					t.Errorf("%d %s %v", a.Status, a.Text, err)
					return
				}
			}
		})
	}
	c := client(t)
	limit := func() int64 { return ask(t, c, "POST", p.URL+"/v1/check", `{"user": "bob", "peek": true}`).Limit }
	for n := int64(10); n < 15; n++ {
		rule := fmt.Sprintf("{id: api, key: user, algorithm: sliding_log, limit: %d/1h}", n)
		if a := ask(t, c, "PUT", p.URL+"/v1/rules/api", rule, "If-Match", "*"); a.Status != http.StatusOK {
			t.Fatalf("%d %s", a.Status, a.Text)
		}
		if got := limit(); got != n {
			t.Errorf("right after the change the limit is %d, want %d", got, n)
		}
		document := strings.Replace(perUser, "5/1h", fmt.Sprintf("%d/1h", 10*n), 1)
		write(t, dir, "rules.yaml", document)
		waitFor(t, "the file", func() bool { return limit() == 10*n })
	}
	// A file that cannot be used is reported and changes nothing; SIGHUP says so, too.
	write(t, dir, "rules.yaml", "rules: [{id: api, key: user, limit: many}]")
	p.cmd.Process.Signal(syscall.SIGHUP)
	waitFor(t, "the report", func() bool { return strings.Contains(p.log.String(), "E0") })
	if got := limit(); got != 140 {
		t.Errorf("the limit is %d, want 140", got)
	}
	os.Remove(path)
	stop.Store(true)
	wg.Wait()
}

// Two writers who both read before they write lose nothing of each other's.
func TestTwoWriters(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir, "serve", "--http", "127.0.0.1:0")
	const each = 15
	var lost atomic.Int64
	var wg sync.WaitGroup
	for writer := range 2 {
		wg.Go(func() {
			c := client(t)
			for i := range each {
				rule := fmt.Sprintf("{id: w%d-%d, match: {path: /%d/%d}, key: user, limit: 5/1h}", writer, i, writer, i)
				for {
					version := ask(t, c, "GET", p.URL+"/v1/rules", "").Header.Get("ETag")
					a := ask(t, c, "POST", p.URL+"/v1/rules", rule, "If-Match", version)
					if a.Status == http.StatusCreated {
						break
					}
					if a.Status != http.StatusPreconditionFailed {
						t.Errorf("%d %s", a.Status, a.Text)
						return
					}
					lost.Add(1)
				}
			}
		})
	}
	wg.Wait()
	c := client(t)
	text := ask(t, c, "GET", p.URL+"/v1/rules?format=yaml", "").Text
	if n := strings.Count(text, "id:"); n != 2*each {
		t.Errorf("%d rules are there, want %d (%d races were lost):\n%s", n, 2*each, lost.Load(), text)
	}
	history := ask(t, c, "GET", p.URL+"/v1/rules/history", "").Text
	if n := strings.Count(history, `"number"`); n < 2*each {
		t.Errorf("%d versions are kept: %s", n, history)
	}
}

// What clients have used survives a stop, and, but for the last seconds, a kill.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "rules.yaml", perUser)
	args := []string{"serve", "--http", "127.0.0.1:0", "--data", "data", "--snapshot-every", "1s"}
	c := client(t)
	p := start(t, dir, args...)
	for range 3 {
		ask(t, c, "POST", p.URL+"/v1/check", alice)
	}
	p.stop(t)
	p = start(t, dir, args...)
	if a := ask(t, c, "POST", p.URL+"/v1/check", alice); a.Remaining != 1 {
		t.Errorf("after a stop: %s", a.Text)
	}
	path := filepath.Join(dir, "data", "keys.snapshot")
	ask(t, c, "POST", p.URL+"/v1/check", alice)
	for range 2 { // one may have begun before
		before, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		waitFor(t, "a snapshot", func() bool { now, err := os.Stat(path); return err == nil && !now.ModTime().Equal(before.ModTime()) })
	}
	p.kill()
	p = start(t, dir, args...)
	if a := ask(t, c, "POST", p.URL+"/v1/check", alice); a.Allowed || a.Remaining != 0 {
		t.Errorf("after a kill: %s", a.Text)
	}
	p.kill()
	// weir starts even with a damaged snapshot.
	if err := os.Truncate(path, 20); err != nil {
		t.Fatal(err)
	}
	p = start(t, dir, args...)
	if a := ask(t, c, "POST", p.URL+"/v1/check", alice); !a.Allowed || a.Remaining != 4 {
		t.Errorf("after damage: %s", a.Text)
	}
	if !strings.Contains(p.log.String(), "could not restore data") {
		t.Error("the log does not mention it")
	}
}

// A request that is under way when weir is told to stop is answered.
func TestStopFinishes(t *testing.T) {
	upstream := newUpstream(t)
	dir := t.TempDir()
	write(t, dir, "rules.yaml", perUser)
	p := start(t, dir, "gateway", "--http", "127.0.0.1:0", "--listen", "127.0.0.1:0", "--upstream", upstream.URL)
	c := client(t)
	answered := make(chan answer)
	go func() {
		a, _ := try(c, "GET", p.Gateway+"/slow", "")
		answered <- a
	}()
	<-upstream.waiting
	done := make(chan int)
	go func() { done <- p.stop(t) }()
	waitFor(t, "the end of new requests", func() bool {
		_, err := try(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, "GET", p.Gateway+"/", "")
		return err != nil
	})
	if a := ask(t, c, "GET", p.URL+"/readyz", ""); a.Status != http.StatusServiceUnavailable {
		t.Errorf("%d %s", a.Status, a.Text)
	}
	close(upstream.release)
	if a := <-answered; a.Status != http.StatusOK || a.Text != "slow" {
		t.Errorf("%d %s", a.Status, a.Text)
	}
	if code := <-done; code != 0 {
		t.Errorf("it ended with %d: %s", code, p.log)
	}
}
