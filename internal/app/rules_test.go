package app

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/testkit/testredis"
)

// One PUT of a rule reads the document that it makes once: the edit, the repository, the
// installation, the answer and the watch pass on what was read. It is compiled once, too.
func TestDocumentIsReadOnce(t *testing.T) {
	for name, o := range map[string]Options{
		"file":  {},
		"redis": {Rules: InRedis, Store: "redis://" + testredis.Start(t).Addr},
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := prepared(t, o, "# ours\n"+perUser)
			a := started(t, o)
			put := func(limit string) {
				t.Helper()
				url := "http://" + a.Addrs().HTTP.String() + "/v1/rules/api"
				status, body := ask(t, nil, "PUT", url, `{"id":"api","key":"user","limit":"`+limit+`"}`, "If-Match", "*")
				if status != http.StatusOK && status != http.StatusCreated {
					t.Fatal(status, body)
				}
			}
			put("3/1h") // from here on, the document that is changed is known
			before := document.Long.Load()
			put("4/1h")
			table, version := a.engine.Rules()
			ctx, cancel := context.WithCancel(t.Context())
			err := a.rules.repository.Watch(ctx, func(v repo.Version, trouble error) {
				if trouble != nil || v.Number != version {
					t.Errorf("version %d, %v; want %d", v.Number, trouble, version)
				}
				if err := a.rules.install(v); err != nil {
					t.Error(err)
				}
				cancel()
			})
			if ctx.Err() == nil {
				t.Fatal(err)
			}
			if err := a.Reload(t.Context()); err != nil {
				t.Error(err)
			}
			if n := document.Long.Load() - before; n != 1 {
				t.Errorf("the document was read %d times", n)
			}
			if again, _ := a.engine.Rules(); again != table {
				t.Error("the same rules were compiled again")
			}
		})
	}
}

// A reload while Redis has lost the rules leaves those in force that are, and says so.
func TestReloadOfLostRules(t *testing.T) {
	redis := testredis.Start(t)
	o, _ := prepared(t, Options{Rules: InRedis, Store: "redis://" + redis.Addr}, "")
	a := started(t, o)
	if status, body := ask(t, nil, "PUT", "http://"+a.Addrs().HTTP.String()+"/v1/rules", perUser, "If-Match", "*"); status != http.StatusOK {
		t.Fatal(status, body)
	}
	redis.Do("FLUSHALL")
	if err := a.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "Redis has lost the rules; version 1 stays in force") {
		t.Errorf("Reload = %v", err)
	}
	if table, version := a.engine.Rules(); version != 1 || len(table.Rules()) != 1 {
		t.Errorf("version %d with %d rules is in force", version, len(table.Rules()))
	}
}
