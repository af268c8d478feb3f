package httplimit

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf16"

	"github.com/weirhq/weir/internal/budget"
)

const byN = `rules: [{id: n, match: {path: /n}, key: global, algorithm: sliding_log, limit: 1000/1h, cost: {estimate: request.json.n, default: 1}}]`

// wide is a text in UTF-16.
func wide(text string) string {
	var b strings.Builder
	for _, c := range utf16.Encode([]rune(text)) {
		b.Write([]byte{byte(c), byte(c >> 8)})
	}
	return b.String()
}

// The default cost is for a field that is missing. What cannot be read, or is no cost, is denied, costs
// nothing and does not reach the handler.
func TestUnreadableBodies(t *testing.T) {
	long := `{"n":400,"x":"` + strings.Repeat("x", maxJSON) + `"}`
	for name, c := range map[string]struct {
		body   string
		header [2]string
		status int
		cost   int64
		says   string
	}{
		"a number":                 {body: `{"n":400}`, status: 200, cost: 400},
		"another notation":         {body: `{"n":4e2}`, status: 200, cost: 400},
		"a fraction":               {body: `{"n":2.5}`, status: 200, cost: 3},
		"zero":                     {body: `{"n":0}`, status: 200, cost: 1},
		"no field":                 {body: `{"m":400}`, status: 200, cost: 1},
		"null":                     {body: `{"n":null}`, status: 200, cost: 1},
		"no body":                  {body: ``, status: 200, cost: 1},
		"encoded as itself":        {body: `{"n":400}`, header: [2]string{"Content-Encoding", "identity"}, status: 200, cost: 400},
		"in UTF-8":                 {body: `{"n":400}`, header: [2]string{"Content-Type", `application/json; charset="UTF-8"`}, status: 200, cost: 400},
		"too long":                 {body: long, status: 413, says: "1 MiB"},
		"compressed":               {body: "\x1f\x8b\x08", header: [2]string{"Content-Encoding", "gzip"}, status: 415, says: "Content-Encoding"},
		"in UTF-7":                 {body: `{"+AG4-":400,"n":1}`, header: [2]string{"Content-Type", "application/json; charset=utf-7"}, status: 415, says: "charset"},
		"in UTF-8 and a comma":     {body: `{"n":400}`, header: [2]string{"Content-Type", `application/json,charset=utf8`}, status: 200, cost: 400},
		"another parameter":        {body: `{"n":400}`, header: [2]string{"Content-Type", `application/json; boundary=charset`}, status: 200, cost: 400},
		"in UTF-7, written so":     {body: `{"n":1}`, header: [2]string{"Content-Type", `application/json; charset*=us-ascii''utf-7`}, status: 415, says: "charset"},
		"a broken type":            {body: `{"n":1}`, header: [2]string{"Content-Type", "application/json; charset=utf-8; charset=utf-7"}, status: 415, says: "charset"},
		"UTF-16":                   {body: wide(`{"n":400}`), status: 400, says: "not valid JSON"},
		"UTF-16 with a mark":       {body: wide("\ufeff" + `{"n":400}`), status: 400, says: "UTF-8"},
		"UTF-8 with a mark":        {body: "\ufeff" + `{"n":400}`, status: 400, says: "not valid JSON"},
		"bytes that are no UTF-8":  {body: "{\"n\":400,\"x\":\"\xff\"}", status: 400, says: "UTF-8"},
		"cut off":                  {body: `{"n":400`, status: 400, says: "not valid JSON"},
		"a form":                   {body: `n=400`, status: 400, says: "not valid JSON"},
		"not a number in JSON":     {body: `{"n":NaN}`, status: 400, says: "not valid JSON"},
		"a text":                   {body: `{"n":"400"}`, status: 400, says: "not a number"},
		"a list":                   {body: `[400]`, status: 400, says: "cost"},
		"too large":                {body: `{"n":1125899906842625}`, status: 400, says: "too large"},
		"infinite":                 {body: `{"n":1e400}`, status: 400, says: "too large"},
		"negative":                 {body: `{"n":-1}`, status: 400, says: "negative"},
		"a negative fraction":      {body: `{"n":-0.5}`, status: 400, says: "negative"},
		"twice":                    {body: `{"n":400,"n":1}`, status: 400, says: "twice"},
		"twice, escaped":           {body: `{"n":400,"\u006e":1}`, status: 400, says: "twice"},
		"in capitals":              {body: `{"N":400}`, status: 400, says: "capitals"},
		"in both":                  {body: `{"n":1,"N":400}`, status: 400, says: "capitals"},
		"other names in both":      {body: `{"n":400,"a":1,"A":2}`, status: 200, cost: 400},
		"twice where nobody looks": {body: `{"n":400,"x":{"a":1,"a":2}}`, status: 200, cost: 400},
	} {
		s := newSettling(t, byN, Options{})
		served := false
		h := s.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served = true }))
		r := chat("/n", c.body)
		if c.header[0] != "" {
			r.Header.Set(c.header[0], c.header[1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		var problem struct {
			Title, Detail string
			Status        int
		}
		if c.status != 200 {
			if err := json.Unmarshal(w.Body.Bytes(), &problem); err != nil || problem.Status != c.status || problem.Title != http.StatusText(c.status) {
				t.Errorf("%s: %s", name, w.Body)
			}
		}
		if got := s.used("n", "global"); w.Code != c.status || got != c.cost || served != (c.status == 200) || !strings.Contains(problem.Detail, c.says) {
			t.Errorf("%s: %d, %d units are used, served: %v; %s", name, w.Code, got, served, w.Body)
		}
	}
}

// A server without room for bodies denies what it cannot read, and a rule is not escaped by a body that its
// condition cannot read, nor by one that only its actual cost reads. A rule that never denies does not.
func TestUnreadableBodiesByRule(t *testing.T) {
	const rest = `, key: global, algorithm: sliding_log, limit: 1000/1h`
	for rules, want := range map[string]int{
		byN: 503,
		`rules: [{id: n, match: {when: 'request.json.plan == "free"'}` + rest + `}]`:                                    503,
		`rules: [{id: n, match: {when: 'request.json.plan == "free" || true'}` + rest + `}]`:                            503,
		`rules: [{id: n` + rest + `, cost: {estimate: 5, actual: 'response.size + request.json.n'}}]`:                   503,
		`rules: [{id: n` + rest + `, tokens: {}}]`:                                                                      503,
		`rules: [{id: n, mode: shadow` + rest + `, tokens: {}}]`:                                                        200,
		`rules: [{id: n, mode: shadow, match: {when: 'request.json.plan == "free"'}` + rest + `}]`:                      200,
		`rules: [{id: n, mode: shadow` + rest + `, cost: {estimate: request.json.n, default: 1}}]`:                      200,
		`rules: [{id: n, match: {path: /other}` + rest + `, cost: {estimate: request.json.n, default: 1}}]`:             200,
		`rules: [{id: n, match: {when: 'request.method == "GET" && request.json.plan == "free"'}` + rest + `}]`:         200,
		`{exempt: {ip: [203.0.113.7]}, rules: [{id: n` + rest + `, cost: {estimate: request.json.n, default: 1}}]}`:     200,
		`{exempt: {ip: [203.0.113.7]}, rules: [{id: n` + rest + `, tokens: {}}]}`:                                       200,
		`{block: {ip: [203.0.113.7]}, rules: [{id: n` + rest + `, cost: {estimate: request.json.n, default: 1}}]}`:      403,
		`rules: [{id: n, key: "header:X-None", limit: 1000/1h, cost: {estimate: request.json.n, default: 1}}]`:          200,
		`rules: [{id: n` + rest + `, cost: {estimate: "request.size > 1 || request.json.n == 1 ? 7 : 8", default: 1}}]`: 200,
	} {
		synctest.Test(t, func(t *testing.T) { // in which nobody waits for room
			room := prompts
			defer func() { prompts = room }()
			prompts = budget.NewBodyReader(16 << 10)
			taken := httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat("x", 11<<10)))
			_, release, err := prompts.Read(budget.BodySource{Request: taken}, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			s := newSettling(t, rules, Options{})
			w := httptest.NewRecorder()
			s.Wrap(answering(200)).ServeHTTP(w, chat("/n", `{"n":400,"x":"`+strings.Repeat("x", 5000)+`"}`))
			if w.Code != want || want == 503 && (w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "being read")) {
				t.Errorf("%s: %d %s", rules, w.Code, w.Body)
			}
		})
	}
}

// A request that cannot be decided is answered in the same way, however long its body is.
func TestUndecidedBodies(t *testing.T) {
	for _, reads := range []string{`tokens: {}`, `cost: {estimate: size(request.json.x), default: 1}`} {
		s := newSettling(t, `rules: [{id: ip, key: ip, limit: 10/1h}, {id: n, key: ip, limit: 10000/1h, `+reads+`}]`, Options{
			Permit: func(*http.Request) func(rule, key string) bool { return func(string, string) bool { return false } },
		})
		for _, n := range []int{10, 5000} {
			w := httptest.NewRecorder()
			s.Wrap(answering(200)).ServeHTTP(w, chat("/v1/chat/completions", `{"x":"`+strings.Repeat("x", n)+`"}`))
			if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "may not be charged") {
				t.Errorf("%s, %d bytes: %d %s", reads, n, w.Code, w.Body)
			}
		}
	}
}
