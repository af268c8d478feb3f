package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weirhq/weir/internal/build"
	"github.com/weirhq/weir/internal/testkit/testredis"
)

// previousWeir is the version before this one: the last release, or else the last commit.
// Without a history there is none, and this version stands in for it.
func previousWeir(t *testing.T) string {
	t.Helper()
	p := buildPrevious()
	switch {
	case p.err != nil:
		t.Fatal(p.err)
	case p.at == "":
		t.Log("there is no earlier commit here; this version is tested beside itself")
	default:
		t.Log("the previous version is", p.at)
	}
	return p.weir
}

type previous struct {
	at   string // the commit
	weir string // the binary
	err  error
}

var buildPrevious = sync.OnceValue(func() (p previous) {
	if p.at = previousCommit(); p.at == "" {
		p.weir = filepath.Join(bin, "weir")
		return p
	}
	dir := filepath.Join(bin, "previous")
	if p.err = os.Mkdir(dir, 0o755); p.err != nil {
		return p
	}
	p.weir = filepath.Join(dir, "weir")
	var profile string
	if profile, p.err = filepath.Abs("../../cmd/weir/weir.pgo"); p.err != nil {
		return p
	}
	for _, step := range []*exec.Cmd{
		exec.Command("git", "-C", "../..", "archive", "--format=tar", "-o", dir+"/source.tar", p.at),
		exec.Command("tar", "-xf", dir+"/source.tar", "-C", dir),
		// With the profile of this version, so that both share what is compiled of the libraries.
		build.Weir(dir, build.Host, p.weir, "-buildvcs=false", "-pgo="+profile),
	} {
		if out, err := step.CombinedOutput(); err != nil {
			p.err = fmt.Errorf("%s: %w\n%s", strings.Join(step.Args, " "), err, out)
			return p
		}
	}
	return p
})

// previousCommit is the release before HEAD, or the commit before it; HEAD itself if there are
// changes beside it, and "" if there is none.
func previousCommit() string {
	git := func(args ...string) string {
		out, err := exec.Command("git", args...).Output()
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(out))
	}
	if git("status", "--porcelain", "--untracked-files=no") != "" {
		return git("rev-parse", "--verify", "-q", "HEAD")
	}
	if release := git("describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD~1"); release != "" {
		return release
	}
	return git("rev-parse", "--verify", "-q", "HEAD~1")
}

// startOther is start for another binary.
func startOther(t *testing.T, weir, dir string, args ...string) *process {
	t.Helper()
	p, err := begin(exec.Command(weir, withGRPC(args)...), dir)
	if err == nil {
		err = p.listens()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

// verdict is the part of an answer that matters here.
type verdict struct {
	Allowed   bool
	Rule      string
	Remaining int64
	Degraded  bool
	Hold      string
	State     string
}

func (p *process) asks(t *testing.T, path, body string) (v verdict) {
	t.Helper()
	a := ask(t, client(t), "POST", p.URL+path, body)
	if err := json.Unmarshal([]byte(a.Text), &v); err != nil || a.Status >= 500 {
		t.Fatalf("%s %s: %d %s", path, body, a.Status, a.Text)
	}
	return v
}

// Instances of two versions share a Redis while one replaces the other: limits count together,
// a hold of one is settled by the other, and both have the same rules.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	server := testredis.Start(t)
	args := []string{"serve", "--http", "127.0.0.1:0", "--rules", "redis", "--store", "redis://" + server.Addr + "?timeout=10s"}
	before := startOther(t, previousWeir(t), t.TempDir(), args...)
	after := start(t, t.TempDir(), args...)
	versions := []*process{before, after}

	algorithms := []string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_buckets", "sliding_log"}
	var rules []string
	for i, limit := range algorithms {
		rules = append(rules, fmt.Sprintf(`{"id": %q, "match": {"path": "/%s"}, "key": "user", "algorithm": %q, "limit": "6/365d"}`, fmt.Sprint("r", i), limit, limit))
	}
	c := client(t)
	for i, r := range rules {
		if a := ask(t, c, "PUT", fmt.Sprintf("%s/v1/rules/r%d", versions[i%2].URL, i), r, "If-Match", "*"); a.Status/100 != 2 {
			t.Fatal(a.Text)
		}
		for _, p := range versions { // what one writes, the other puts in force before it writes itself
			waitFor(t, "the rule", func() bool {
				return p.asks(t, "/v1/check", fmt.Sprintf(`{"user": "nobody", "path": "/%s", "peek": true}`, algorithms[i])).Rule == fmt.Sprint("r", i)
			})
		}
	}

	for _, limit := range algorithms {
		body := fmt.Sprintf(`{"user": "alice", "path": "/%s"}`, limit)
		for i := range 6 {
			if v := versions[i%2].asks(t, "/v1/check", body); !v.Allowed || v.Degraded || v.Remaining != int64(5-i) {
				t.Errorf("%s: charge %d: %+v", limit, i, v)
			}
		}
		for i, p := range versions {
			if v := p.asks(t, "/v1/check", body); v.Allowed || v.Degraded {
				t.Errorf("%s: version %d allows more than the limit: %+v", limit, i, v)
			}
		}
		body = fmt.Sprintf(`{"user": "bob", "path": "/%s", "cost": 4}`, limit)
		for i, p := range versions {
			other := versions[1-i]
			held := p.asks(t, "/v1/reserve", body)
			if held.Hold == "" {
				t.Fatalf("%s: version %d: %+v", limit, i, held)
			}
			if v := other.asks(t, "/v1/reserve", body); v.Allowed {
				t.Errorf("%s: the other version does not see what is reserved: %+v", limit, v)
			}
			if v := other.asks(t, "/v1/settle", fmt.Sprintf(`{"hold": %q, "used": 0}`, held.Hold)); v.State != "settled" {
				t.Errorf("%s: the other version does not settle it: %+v", limit, v)
			}
		}
	}
	if code := before.stop(t); code != 0 {
		t.Errorf("the previous version ends with %d", code)
	}
	if v := after.asks(t, "/v1/check", `{"user": "carol", "path": "/sliding_log"}`); !v.Allowed || v.Degraded {
		t.Errorf("%+v", v)
	}
}

// A new version goes on with what the previous one left in --data.
func TestUpgradeWithData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "rules.yaml", "rules: [{id: api, key: user, algorithm: sliding_log, limit: 5/1d}]")
	args := []string{"serve", "--http", "127.0.0.1:0", "--data", "data"}
	const body = `{"user": "alice", "path": "/"}`
	before := startOther(t, previousWeir(t), dir, args...)
	for range 3 {
		before.asks(t, "/v1/check", body)
	}
	if code := before.stop(t); code != 0 {
		t.Fatalf("the previous version ends with %d: %s", code, before.log)
	}
	after := start(t, dir, args...)
	if v := after.asks(t, "/v1/check", body); v.Remaining != 1 {
		t.Errorf("after the upgrade: %+v", v)
	}
	if left := asides(t, dir, "*"); len(left) > 0 {
		t.Errorf("the new version cannot read %v", left)
	}
}
