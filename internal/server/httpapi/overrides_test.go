package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/testkit"
)

// none are the Overrides of a stand that keeps none.
var none = new(manage.Overrides)

// drawer is a place in memory, which is lost when the store is.
type drawer struct {
	store  *losable
	mu     sync.Mutex
	source []byte
}

func (d *drawer) Read(_ context.Context, known repo.Revision) ([]byte, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.store.lost.Load() {
		return nil, false, errLost
	}
	return d.source, repo.RevisionOf(d.source) != known, nil
}

func (d *drawer) Write(_ context.Context, base repo.Revision, source []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if repo.RevisionOf(d.source) != base {
		return repo.ErrChanged
	}
	d.source = source
	return nil
}

func (d *drawer) Watch(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return ctx.Err()
}

// overridesOf are those of a stand, among them one of the past.
func overridesOf(t testing.TB, s *stand, clock func() time.Time) *manage.Overrides {
	t.Helper()
	past := manage.OverrideList{{
		ID: "one", Rule: "api", Key: "user:zoe", Limits: []string{"5/1m"}, Reason: "scraping", Author: "alice",
		CreatedAt: begin.Add(-2 * time.Hour), EndsAt: begin.Add(-time.Hour),
	}}
	all := manage.NewOverrides(manage.OverrideOptions{
		Store: &drawer{store: s.store, source: testkit.Must(past.Encode(begin))(t)}, Engine: s.engine, Clock: clock,
		Logger: slog.New(slog.DiscardHandler),
	})
	testkit.OK(t, all.Look(t.Context()))
	return all
}

const raise = `{"rule":"api","key":"user:alice","limit":"500/1m","for":"2h","reason":"migration"}`

var overridesTried = []tried{
	{what: "GET /v1/overrides?state=all", status: 200},
	{what: "GET /v1/overrides?state=any", status: 400},
	{what: "GET /v1/overrides", status: 404, options: Options{Service: manage.Service{Overrides: none}}, with: func(*testing.T, *Options) {}},
	{what: "POST /v1/overrides", body: `{"rule":"api","key":"user:a","limits":["5/1m","9/1h"],"until":"2026-01-02T00:00:00+01:00","reason":"x"}`, status: 201},
	{what: "POST /v1/overrides", body: `{"rule":"api","key":"user:a","limit":"5/month","zone":"Asia/Shanghai","starts":15,"for":"2h","reason":"x"}`, status: 201},
	{what: "POST /v1/overrides", body: `{"rule":"api"}`, status: 400},
	{what: "POST /v1/overrides", body: strings.Replace(raise, "api", "none", 1), status: 404},
	{what: "POST /v1/overrides", body: strings.Repeat(" ", maxOverrideBody+1), status: 413},
	{what: "POST /v1/overrides", body: raise, status: 503, gone: true},
	{what: "DELETE /v1/overrides/one?x=1", status: 400},
	{what: "DELETE /v1/overrides/two", status: 404},
	{what: "DELETE /v1/overrides/one", status: 503, gone: true},
}

func TestOverrides(t *testing.T) {
	s := newStand(t, Options{Service: manage.Service{Tokens: tokens(t)}})
	ask := func(want string) {
		t.Helper()
		var a CheckAnswer
		s.call("POST /v1/check", `{"user":"alice","path":"/api/x","tier":"pro"}`).want(t, 200, &a)
		r := a.Results[0]
		got := r.Policy
		if r.Override != nil {
			got += fmt.Sprintf(" until %s", r.Override.EndsAt.Format(time.RFC3339Nano))
		}
		if got != want {
			t.Errorf("the limit is %s, want %s", got, want)
		}
		var k KeysAnswer
		s.call("GET /v1/keys?key=user:alice", "", as(readerToken)).want(t, 200, &k)
		if same := k.Results[0]; same.Policy != r.Policy || (same.Override == nil) != (r.Override == nil) {
			t.Errorf("/v1/keys says %+v, and /v1/check %+v", same, r)
		}
	}
	list := func(query, want string) {
		t.Helper()
		var all OverridesAnswer
		s.call("GET /v1/overrides"+query, "", as(readerToken)).want(t, 200, &all)
		var texts []string
		for _, o := range all.Overrides {
			text := fmt.Sprintf("%s %s %s %s", o.Key, strings.Join(o.Limits, ","), o.Author, o.State)
			if !o.EndedAt.IsZero() {
				text += " " + o.EndedAt.Sub(begin).String()
			}
			texts = append(texts, strings.TrimSpace(text+" "+o.EndedBy+o.Code+" "+o.NoEffect))
		}
		if got := strings.Join(texts, "; "); got != want {
			t.Errorf("%s lists %q, want %q", query, got, want)
		}
	}
	ask("1000/1m")
	var first, second OverrideAnswer
	s.call("POST /v1/overrides", raise, as(adminToken)).want(t, 201, &first)
	if first.State != manage.OverrideActive || first.Author != "alice" || !first.EndsAt.Equal(begin.Add(2*time.Hour)) || first.Reason != "migration" {
		t.Errorf("%+v", first)
	}
	ask("500/1m until 2026-01-01T02:00:00.5Z")
	s.now.Add(time.Minute.Microseconds())
	s.call("POST /v1/overrides", strings.Replace(raise, "500/1m", "20/1m", 1), as(adminToken)).want(t, 201, &second)
	ask("20/1m until 2026-01-01T02:01:00.5Z")
	list("", "user:alice 20/1m alice active")
	list("?state=ended", "user:alice 500/1m alice replaced 1m0s alice; user:zoe 5/1m alice expired -1h0m0s")
	list("?state=all&rule=login", "")
	list("?state=all&key=user:zoe", "user:zoe 5/1m alice expired -1h0m0s")

	// It ends by itself, or by hand.
	s.now.Add(2*time.Hour.Microseconds() - 1)
	ask("20/1m until 2026-01-01T02:01:00.5Z")
	s.now.Add(1)
	ask("1000/1m")
	list("", "")
	list("?state=all&key=user:alice", "user:alice 20/1m alice expired 2h1m0s; user:alice 500/1m alice replaced 1m0s alice")
	s.call("POST /v1/overrides", strings.Replace(raise, "500/1m", "unlimited", 1), as(adminToken)).want(t, 201, &first)
	s.call("DELETE /v1/overrides/"+first.ID, "", as(adminToken)).want(t, 200, &second)
	if second.State != manage.OverrideEnded || second.EndedBy != "alice" || !second.EndedAt.Equal(second.CreatedAt) {
		t.Errorf("%+v", second)
	}
	s.call("DELETE /v1/overrides/"+first.ID, "", as(adminToken)).want(t, 200, nil)
	ask("1000/1m")

	// A rule that is gone or off leaves it without effect, and the list says so.
	s.call("POST /v1/overrides", raise, as(adminToken)).want(t, 201, nil)
	for _, c := range []struct{ body, want string }{
		{`{id: api, key: user, limit: 7/1m, mode: "off"}`, "rule_off The rule is off."},
		{"{id: api, key: ip, limit: 7/1m}", `other_key The key under the rule "api": this is not part of the rule's key; write it as "ip:203.0.113.7".`},
		{"{id: api, key: user, limit: 7/1m, cost: 600, burst: 600}", "bad_limit limit: a request costs 600, but at most 500 are allowed at once, so every request would be denied; lower the cost, or raise the limit or the burst."},
	} {
		s.call("PUT /v1/rules/api", c.body, as(adminToken), anyVersion).want(t, 200, nil)
		list("", "user:alice 500/1m alice active "+c.want)
	}
	s.call("DELETE /v1/rules/api", "", as(adminToken), anyVersion).want(t, 200, nil)
	list("", `user:alice 500/1m alice active no_rule There is no rule "api".`)
}

func TestOverridesProblems(t *testing.T) {
	s := newStand(t, Options{})
	with := func(field, value string) string {
		values := map[string]string{"rule": `"api"`, "key": `"user:alice"`, "limit": `"5/1m"`, "for": `"1h"`, "reason": `"x"`}
		for _, f := range strings.Split(field, "-") {
			values[f] = ""
		}
		name := strings.Split(field, "-")[0]
		values[name] = value
		var parts []string
		for name, v := range values {
			if v != "" {
				parts = append(parts, fmt.Sprintf("%q:%s", name, v))
			}
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	for _, c := range []struct {
		field, value string
		kind         *fault.Kind
		words        string
	}{
		{"rule", "", fault.BadField, "required"}, {"rule", `"x"`, fault.NoRule, "no rule"},
		{"key", "", fault.BadField, "required"}, {"key", `"ip:192.0.2.1"`, fault.BadField, "user:"}, {"key", `"` + strings.Repeat("x", 1025) + `"`, fault.BadField, "1024"},
		{"limit", "", fault.BadField, "required"}, {"limit", `"5"`, fault.BadField, "N/period"}, {"limit", `"0/1m"`, fault.BadField, ""}, {"limit", "5", fault.BadField, "string"},
		{"limits-limit", `["5/1m","6/1m"]`, fault.BadField, "same period"}, {"limits", `["5/1m"]`, fault.BadField, "combined"},
		{"limits-limit", `["unlimited","6/1m"]`, fault.BadField, "unlimited"}, {"limits-limit", `[` + strings.Repeat(`"5/1m",`, 16) + `"5/1m"]`, fault.BadField, "17"},
		{"zone", `"UTC"`, fault.BadField, "1m is not a period of the calendar"}, {"starts", "15", fault.BadField, "1m is not a period of the calendar"}, {"starts", `["15"]`, fault.BadField, "starts"},
		{"burst", "-1", fault.BadField, "burst"}, {"burst", "0.5", fault.BadField, "burst"},
		{"for", "", fault.BadField, "required"}, {"for", `"-1h"`, fault.BadField, "duration"}, {"for", `"0s"`, fault.BadField, "duration"}, {"for", `"367d"`, fault.BadField, "366 days"},
		{"until-for", `"tomorrow"`, fault.BadField, "not a time"}, {"until-for", `"2026-01-01T00:00:00Z"`, fault.BadField, "future"}, {"for-", `"1h","until":"2026-01-02T00:00:00Z"`, fault.BadField, "combined"},
		{"reason", "", fault.BadField, "required"}, {"reason", `" "`, fault.BadField, "required"}, {"reason", `"` + strings.Repeat("x", 501) + `"`, fault.BadField, "500"},
		{"author", `"mallory"`, fault.BadField, "author"},
	} {
		p := s.call("POST /v1/overrides", with(c.field, c.value)).wantProblem(t, c.kind, c.words)
		if field := strings.Split(c.field, "-")[0]; p.Field != field && p.Field+"s" != field && !(field == "for" && p.Field == "until") {
			t.Errorf("%s %s: the field is %q in %+v", c.field, c.value, p.Field, p)
		}
	}
	var all OverridesAnswer
	if s.call("GET /v1/overrides", "").want(t, 200, &all); len(all.Overrides) != 0 {
		t.Errorf("there are %+v", all)
	}
}

// An override can move one client to another billing day. Its zone is that of the rule.
func TestOverrideOfABillingDay(t *testing.T) {
	s := newStand(t, Options{Service: manage.Service{Rules: openRules(t, "rules: [{id: plans, key: user, limit: 3/month, zone: Asia/Shanghai}]\n")}})
	for _, starts := range []string{`15`, `"15"`} {
		var made OverrideAnswer
		s.call("POST /v1/overrides", `{"rule":"plans","key":"user:bob","limit":"5/month","starts":`+starts+`,"for":"90d","reason":"billing day"}`).want(t, 201, &made)
		if made.Starts != "15" || made.Zone != "" {
			t.Errorf("%+v", made)
		}
	}
	for user, want := range map[string]string{"alice": "2026-01-31T16:00:00Z", "bob": "2026-01-14T16:00:00Z"} {
		var a CheckAnswer
		s.call("POST /v1/check", `{"user":"`+user+`"}`).want(t, 200, &a)
		if got := time.Unix(a.Results[0].ResetAt, 0).UTC().Format(time.RFC3339); got != want {
			t.Errorf("the period of %s ends at %s, want %s", user, got, want)
		}
	}
	s.call("POST /v1/overrides", `{"rule":"plans","key":"user:carol","limit":"5/month","starts":null,"for":"90d","reason":"x"}`).want(t, 201, new(OverrideAnswer))
	s.call("POST /v1/overrides", `{"rule":"plans","key":"user:bob","limit":"5/month","zone":"Mars/Olympus","for":"90d","reason":"x"}`).wantProblem(t, fault.BadField, "time zone database")
	s.call("POST /v1/overrides", `{"rule":"plans","key":"user:bob","limit":"5/month","starts":"monday","for":"90d","reason":"x"}`).wantProblem(t, fault.BadField, "1 to 31")
}

// The key of a client is kept as stores know it: a secret is hashed, and the list finds it by
// either.
func TestOverridesHideSecrets(t *testing.T) {
	s := newStand(t, Options{Service: manage.Service{Rules: openRules(t, "rules: [{id: keys, key: api_key, limit: 5/1m}]\n")}})
	const secret = "api_key:a-very-secret-key"
	var made OverrideAnswer
	r := s.call("POST /v1/overrides", `{"rule":"keys","key":"`+secret+`","limit":"50/1m","for":"1h","reason":"x"}`).want(t, 201, &made)
	if strings.Contains(string(r.body), "a-very") || !strings.HasPrefix(made.Key, "api_key:sha256:") {
		t.Errorf("%s", r.body)
	}
	for _, key := range []string{secret, made.Key} {
		var all OverridesAnswer
		if s.call("GET /v1/overrides?key="+key, "").want(t, 200, &all); len(all.Overrides) != 1 {
			t.Errorf("by %s: %+v", key, all)
		}
	}
	var a CheckAnswer
	if s.call("POST /v1/check", `{"api_key":"a-very-secret-key"}`).want(t, 200, &a); a.Limit != 50 {
		t.Errorf("%+v", a)
	}
}
