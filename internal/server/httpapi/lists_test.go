package httpapi

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/fault"
)

// A client is put on a list and taken off again, and the document stays as it was
// otherwise.
func TestLists(t *testing.T) {
	s := newStand(t, Options{})
	source := func() string { return string(s.call("GET /v1/rules?format=yaml", "").body) }
	before := source()
	check := func(reason string) {
		t.Helper()
		var a CheckAnswer
		s.call("POST /v1/check", `{"user": "mallory", "ip": "192.0.2.1", "path": "/api/x"}`).want(t, 200, &a)
		if a.Reason != reason {
			t.Errorf("the reason is %q, want %q", a.Reason, reason)
		}
	}
	for _, list := range []struct{ name, kind, client, reason string }{{"block", "ip", "192.0.2.1", "blocked"}, {"exempt", "user", "mallory", "exempt"}} {
		who := "/v1/" + list.name + "?" + list.kind + "=" + list.client
		var w WriteAnswer
		s.call("PUT "+who, "").want(t, 200, &w)
		if want := list.name + ": added " + list.kind + " " + list.client; w.Version.Summary != want || !w.CommentsKept {
			t.Errorf("it is written as %+v, want %q", w, want)
		}
		check(list.reason)
		if got := strings.Replace(source(), ", \""+list.client+"\"", "", 1); got != before {
			t.Errorf("the document is %s", got)
		}
		number := w.Version.Number
		if s.call("PUT "+who, "").want(t, 200, &w); w.Version.Number != number {
			t.Errorf("a client that is listed is written again: %+v", w)
		}
		s.call("DELETE "+who+"&summary=enough", "").want(t, 200, &w)
		if w.Version.Summary != "enough" {
			t.Errorf("the summary is %q", w.Version.Summary)
		}
		check("limits")
		if got := source(); got != before {
			t.Errorf("the document is %s, want %s", got, before)
		}
	}
}

func TestListsReject(t *testing.T) {
	s := newStand(t, Options{})
	for query, field := range map[string]string{
		"":                                   "",
		"?name=x":                            "name",
		"?ip=192.0.2.1&user=alice":           "user",
		"?user=" + strings.Repeat("x", 1025): "user",
		"?api_key=a-secret":                  "api_key",
		"?user=%ff":                          "user",
		"?user=a&summary=" + strings.Repeat("x", 1001): "summary",
	} {
		p := s.call("PUT /v1/block"+query, "").wantProblem(t, fault.BadField)
		if p.Field != field || strings.Contains(p.Detail, "a-secret") {
			t.Errorf("%s is a problem of %q: %s", query, p.Field, p.Detail)
		}
	}
	s.call("PUT /v1/block?ip=nowhere", "").wantProblem(t, fault.BadRules)
}
