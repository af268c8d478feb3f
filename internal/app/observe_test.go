package app

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

// The log tells a limit that is used up from too many open holds.
func TestLogOfCrowdedDenials(t *testing.T) {
	for limit, crowded := range map[string]bool{"5/1h": false, "200000/1h": true} {
		var log strings.Builder
		e := testkit.Must(engine.New(engine.Options{
			Store:     memory.New(memory.Options{MaxKeys: 4096}),
			Observers: []engine.Observer{&denials{logger: slog.New(slog.NewTextHandler(&log, nil)), sparse: manage.Sparse{Lines: 1, Every: time.Hour}}},
		}))(t)
		set, problems := rule.Parse("test.json", []byte(`{"rules": [{"id": "all", "key": "global", "limit": "`+limit+`"}]}`))
		testkit.OK(t, problems.Err())
		e.Install(testkit.Must(rule.Compile(set, rule.Options{}))(t), 1)
		var v engine.Verdict
		for v.Allowed = true; v.Allowed; {
			testkit.OK(t, e.Reserve(t.Context(), &rule.Request{User: "alice"}, time.Minute, &v))
		}
		if got := log.String(); !strings.Contains(got, "reason=limits") || strings.Contains(got, "crowded=true") != crowded {
			t.Errorf("%s: %s", limit, got)
		}
	}
}
