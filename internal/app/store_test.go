package app

import (
	"net/http"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testredis"
	"github.com/weirhq/weir/queue"
)

// Where checks may take long, other calls may, too.
func TestSlowStore(t *testing.T) {
	proxy := testredis.NewProxy(t, testredis.Start(t))
	o, _ := prepared(t, Options{
		Store: "redis://" + proxy.Addr + "?timeout=1m&dial_timeout=1m", Rules: InRedis,
		Queues: map[string]queue.Settings{"mail": {N: 1, Period: time.Hour}},
	}, "")
	url := urlOf(started(t, o))
	proxy.Latency(1100 * time.Millisecond) // longer than any of them waits by default
	for _, call := range []struct {
		method, path, body string
		want               int
	}{
		{"PUT", "/v1/rules", perUser, http.StatusOK},
		{"POST", "/v1/overrides", `{"rule": "api", "key": "user:alice", "limit": "5/1h", "for": "1h", "reason": "test"}`, http.StatusCreated},
		{"POST", "/v1/counters/add", `{"add": [{"name": "views"}]}`, http.StatusOK},
		{"POST", "/v1/queues/mail/push", `{"payload": "hello"}`, http.StatusAccepted},
	} {
		if status, body := ask(t, nil, call.method, url+call.path, call.body, "If-Match", "*"); status != call.want {
			t.Errorf("%s %s: %d %s", call.method, call.path, status, body)
		}
	}
}
