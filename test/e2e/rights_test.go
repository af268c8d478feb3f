package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/weirhq/weir/internal/testkit/testredis"
)

// The rights that docs/guides/redis.md gives for the whole service are enough: Redis denies
// nothing that weir does with limits, rules, statistics, alerts, counters and queues.
func TestRightsOfTheService(t *testing.T) {
	rights, err := os.ReadFile("../../store/redis/testdata/serve.acl")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	users := write(t, dir, "users.acl", string(rights)+"user default on nopass ~* &* +@all\n")
	redis := testredis.Start(t, "--aclfile", users)
	p := start(t, dir, "serve", "--http", "127.0.0.1:0", "--rules", "redis", "--queue", "mail=10/1s",
		"--store", "redis://weir:change-me@"+redis.Addr+"?timeout=5s", "--data", filepath.Join(dir, "data"))
	c := client(t)
	for _, call := range []struct{ method, path, body string }{
		{"PUT", "/v1/rules/log", `{"id": "log", "key": "user", "algorithm": "sliding_log", "limit": "5/1m"}`},
		{"PUT", "/v1/rules/bucket", `{"id": "bucket", "key": "user", "limit": "5/1m"}`},
		{"GET", "/v1/rules/history", ""},
		{"POST", "/v1/rules/rollback", `{"version": 1}`},
		{"POST", "/v1/check", alice},
		{"GET", "/v1/keys?key=user:alice", ""},
		{"DELETE", "/v1/keys?key=user:alice", ""},
		{"POST", "/v1/counters/add", `{"add": [{"name": "views"}, {"name": "views", "window": "day"}, {"name": "sales", "by": 0.5}]}`},
		{"POST", "/v1/counters/add", `{"add": [{"name": "users", "window": "month", "distinct": true, "members": ["alice"]}]}`},
		{"POST", "/v1/counters/set", `{"set": [{"name": "stock", "value": 7}]}`},
		{"POST", "/v1/distributions/observe", `{"observe": [{"name": "ms", "window": "minute", "values": [1, 2.5]}]}`},
		{"GET", "/v1/distributions?name=ms&window=minute", ""},
		{"GET", "/v1/counters?name=views", ""},
		{"GET", "/v1/counters/history?name=views&window=day", ""},
		{"POST", "/v1/counters/reset", `{"reset": [{"name": "views"}]}`},
		{"POST", "/v1/ids", `{"sequence": "orders"}`},
		{"POST", "/v1/boards/score", `{"board": {"name": "day", "window": "day"}, "score": [{"member": "go", "by": 2}]}`},
		{"POST", "/v1/boards/score", `{"board": {"name": "hour", "sliding_s": 3600}, "score": [{"member": "go", "by": 2}]}`},
		{"GET", "/v1/boards/top?board=day&window=day", ""},
		{"GET", "/v1/boards/top?board=hour&sliding_s=3600", ""},
		{"POST", "/v1/hot/hit", `{"list": {"name": "products", "window_s": 3600, "threshold": 2}, "items": ["1", "1", "2"]}`},
		{"GET", "/v1/hot?list=products&window_s=3600&threshold=2", ""},
		{"POST", "/v1/actions", `{"user": "1001", "actions": ["like", "share"]}`},
		{"GET", "/v1/actions?user=1001&action=like", ""},
		{"POST", "/v1/queues/mail/push", `{"payload": "to alice", "id": "letter-1"}`},
		{"POST", "/v1/queues/mail/lease", `{"max": 1, "wait_s": 5}`},
		{"GET", "/v1/queues/mail", ""},
		{"GET", "/v1/queues/mail/dead", ""},
		{"GET", "/v1/alerts", ""},
		{"GET", "/v1/stats/series", ""},
		{"GET", "/v1/stats/top", ""},
		{"GET", "/v1/stats/suggest?rule=log", ""},
	} {
		if a := ask(t, c, call.method, p.URL+call.path, call.body, "If-Match", "*"); a.Status >= http.StatusBadRequest || a.Degraded {
			t.Errorf("%s %s: %d %s", call.method, call.path, a.Status, a.Text)
		}
	}
	waitFor(t, "the statistics in Redis", func() bool {
		return redis.Do("EXISTS", "weir:{stats}:series:86400:marks") != "0"
	})
	if code := p.stop(t); code != 0 {
		t.Errorf("it ended with %d", code)
	}
	if denied := redis.Do("ACL", "LOG"); denied != "" {
		t.Errorf("Redis denied: %s", denied)
	}
}
