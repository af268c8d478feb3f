package httpapi

import (
	"reflect"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
)

// A detail can be said in another language by its code and its values.
func TestProblemCodes(t *testing.T) {
	s := newStand(t, Options{Service: manage.Service{Tokens: tokens(t)}})
	for _, c := range []struct {
		what, body string
		headers    []string
		code       string
		params     map[string]any
	}{
		{"POST /v1/check", `{"usr":"x"}`, nil, "unknown-name", map[string]any{"name": "usr", "near": "user"}},
		{"POST /v1/check", strings.Repeat(" ", MaxCheckBody+1), nil, "", map[string]any{"max": 65536.0}},
		{"GET /v1/rules/none", "", []string{as(adminToken)}, "", map[string]any{"rule": "none"}},
		{"POST /v1/rules", small, []string{as(readerToken)}, "", map[string]any{"holder": "bob", "has": "read", "needs": "admin"}},
		{"DELETE /v1/rules/login", "", []string{as(adminToken), `If-Match: "1"`}, "", map[string]any{"version": 2.0}},
		{"DELETE /v1/rules/login?summary=" + strings.Repeat("x", 1001), "", []string{as(adminToken), anyVersion}, "too-long", map[string]any{"bytes": 1001.0, "max": 1000.0}},
		{"GET /v1/rules", "", []string{own, "Cookie: weir_session=alice|1|x"}, "session-over", nil},
		{"GET /v1/rules", "", nil, "", nil},
	} {
		var p Problem
		r := s.call(c.what, c.body, c.headers...)
		r.want(t, r.StatusCode, &p)
		if p.Detail == "" || p.Code != c.code || !reflect.DeepEqual(p.Params, c.params) {
			t.Errorf("%s: %s", c.what, r.body)
		}
	}
	// What a client sent is cut off here as in the detail.
	if p := fault.BadField.Of("x").Coded("unknown-name", "name", strings.Repeat("x", 1<<20)); len(p.Params["name"].(string)) > manage.MaxDetail+10 {
		t.Errorf("%d bytes", len(p.Params["name"].(string)))
	}
}
