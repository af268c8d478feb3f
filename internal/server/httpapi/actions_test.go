package httpapi

import (
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/fault"
)

func TestActions(t *testing.T) {
	eachStore(t, func(t *testing.T, k *kept) {
		k.says(t, "POST /v1/actions", `{"user":"1001","actions":["like"]}`, `{"user":"1001","actions":[{"action":"like","hour":1,"day":1}]}`)
		k.pass(time.Hour)
		k.says(t, "POST /v1/actions", `{"user":"1001","actions":["like","share","like"]}`,
			`{"user":"1001","actions":[{"action":"like","hour":1,"day":2},{"action":"share","hour":1,"day":1},{"action":"like","hour":2,"day":3}]}`)
		k.says(t, "GET /v1/actions?user=1001&action=like&action=post", "",
			`{"user":"1001","actions":[{"action":"like","hour":2,"day":3},{"action":"post","hour":0,"day":0}]}`)
		k.says(t, "GET /v1/actions?user=1002&action=like", "", `{"user":"1002","actions":[{"action":"like","hour":0,"day":0}]}`)
		k.says(t, "GET /v1/actions/history?user=1001&action=like&n=2", "",
			`{"user":"1001","actions":[{"action":"like","points":[{"start":"2026-01-01T00:00:00Z","value":1},{"start":"2026-01-01T01:00:00Z","value":2}]}]}`)
		k.says(t, "GET /v1/actions/history?user=1001&action=share&window=day&n=1", "",
			`{"user":"1001","actions":[{"action":"share","points":[{"start":"2026-01-01T00:00:00Z","value":1}]}]}`)
		// Another zone has other days.
		k.says(t, "POST /v1/actions", `{"user":"1001","actions":["like"],"zone":"America/New_York"}`, `{"user":"1001","actions":[{"action":"like","hour":1,"day":1}]}`)
		k.says(t, "GET /v1/actions/history?user=1001&action=like&window=day&n=1&zone=America/New_York", "",
			`{"user":"1001","actions":[{"action":"like","points":[{"start":"2025-12-31T00:00:00-05:00","value":1}]}]}`)
	})
}

func TestActionProblems(t *testing.T) {
	k := keptInMemory(t, Options{})
	const record, read, history = "POST /v1/actions", "GET /v1/actions", "GET /v1/actions/history"
	long := strings.Repeat("x", counter.MaxNameLen+1)
	for _, c := range []struct{ what, body, field, words string }{
		{record, `{"actions":["like"]}`, "user", "it is empty"},
		{record, `{"user":"` + long + `","actions":["like"]}`, "user", "at most 251"},
		{record, `{"user":"u"}`, "actions", "required"},
		{record, `{"user":"u","actions":"like"}`, "actions", "send a list"},
		{record, `{"user":"u","actions":["like",""]}`, "actions[1]", "it is empty"},
		{record, `{"user":"u","actions":["` + long + `"]}`, "actions[0]", "at most 256"},
		{record, `{"user":"u","actions":[` + strings.Repeat(`"a",`, maxActions) + `"a"]}`, "actions", "maximum of 128"},
		{record, `{"user":"u","actions":["like"],"zone":"x"}`, "zone", "Asia/Shanghai"},
		{read + "?action=like", "", "user", "it is empty"},
		{read + "?user=u", "", "action", "required"},
		{read + "?user=u&action=", "", "action", "it is empty"},
		{read + "?user=u&" + strings.Repeat("action=a&", maxActions+1), "", "action", "maximum of 128"},
		{read + "?user=u&action=a&zone=x", "", "zone", "Asia/Shanghai"},
		{read + "?user=u&action=a&window=day", "", "window", "no parameter"},
		{history + "?user=u&action=a&window=minute", "", "window", "write hour or day"},
		{history + "?user=u&action=a&window=x", "", "window", "not a window"},
		{history + "?user=u&action=a&n=721", "", "n", "only 720"},
		{history + "?user=u&action=a&n=0", "", "n", "from 1"},
	} {
		p := k.call(c.what, c.body).wantProblem(t, fault.BadField, c.words)
		if p.Field != c.field || strings.Contains(p.Detail, "weir:") {
			t.Errorf("%s %s: %q in %q", c.what, c.body, p.Detail, p.Field)
		}
	}
}
