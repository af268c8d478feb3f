package httpapi

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/clients"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/trust"
	"github.com/weirhq/weir/rule"
)

// someClients are the directory of a stand.
var someClients = []string{
	`{"client":"org:acme","tier":"pro","zone":"Europe/Berlin","starts":15}`,
	`{"client":"user:ann","parent":"org:acme","limits":{"api":"500/1m"},"note":"contract 4711"}`,
	`{"client":"api_key:sha256:f2cdc8c72fd298956aef69228aa88a4d","parent":"user:ann"}`,
	`{"client":"user:bob","blocked":true}`,
}

// registry has some clients.
func registry(t testing.TB) *clients.Registry {
	t.Helper()
	r := clients.New(clients.Options{Now: func() time.Time { return begin }, Logger: slog.New(slog.DiscardHandler)})
	var changes []clients.Change
	for _, line := range someClients {
		c, problems := rule.ReadClient("", []byte(line))
		if err := problems.Err(); err != nil {
			t.Fatal(err)
		}
		changes = append(changes, clients.Change{Client: c})
	}
	outcomes, err := r.Apply(t.Context(), "test", changes)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range outcomes {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
	}
	return r
}

var (
	fromFile = Options{Service: manage.Service{Clients: func() *clients.Registry {
		r := clients.New(clients.Options{})
		d, _, _ := rule.ReadDirectory("", strings.NewReader(someClients[3]))
		r.Show(d)
		return r
	}()}}
	unread         = Options{Service: manage.Service{Clients: clients.New(clients.Options{})}}
	withoutClients = Options{Service: manage.Service{Clients: noClients}}
	annsKey        = "/v1/clients/api_key:sha256:f2cdc8c72fd298956aef69228aa88a4d"
)

// noClients are of a stand without a directory.
var noClients = clients.New(clients.Options{})

var clientsTried = []tried{
	{what: "GET /v1/clients", status: 404, options: withoutClients},
	{what: "GET /v1/clients/tiers", status: 404, options: withoutClients},
	{what: "GET /v1/clients/export", status: 404, options: withoutClients},
	{what: "POST /v1/clients/import", status: 404, options: withoutClients},
	{what: "PUT /v1/clients/user:ann", status: 404, options: withoutClients},
	{what: "GET /v1/clients", status: 503, options: unread},
	{what: "GET /v1/clients/tiers", status: 503, options: unread},
	{what: "GET /v1/clients/export", status: 503, options: unread},
	{what: "POST /v1/clients/import", status: 503, options: unread},
	{what: "GET /v1/clients/user:ann", status: 503, options: unread},
	{what: "PUT /v1/clients/user:ann", status: 503, options: unread},
	{what: "PATCH /v1/clients/user:ann", status: 503, options: unread},
	{what: "DELETE /v1/clients/user:ann", status: 503, options: unread},
	{what: "GET /v1/clients?parent=org:acme&tier=&kind=user&contains=a&after=user:a&limit=1", status: 200},
	{what: "GET /v1/clients?limit=10000000", status: 400},
	{what: "GET /v1/clients/tiers?x=1", status: 400},
	{what: "GET /v1/clients/export?x=1", status: 400},
	{what: "GET " + annsKey, status: 200},
	{what: "GET /v1/clients/user:ann", status: 304, headers: []string{"If-None-Match: *"}},
	{what: "GET /v1/clients/ann", status: 400},
	{what: "GET /v1/clients/user:nobody", status: 404},
	{what: "PUT /v1/clients/user:new", body: `{"parent":"org:acme","starts":1,"limits":{"api":["5/1m","9/1h"]}}`, status: 201},
	{what: "PUT /v1/clients/user:new", body: `{"tear":"pro"}`, status: 400},
	{what: "PUT /v1/clients/user:new", body: "{}", status: 409, options: fromFile},
	{what: "PUT /v1/clients/user:ann", body: "{}", status: 412, headers: []string{`If-Match: "none"`}},
	{what: "PUT /v1/clients/user:ann", body: strings.Repeat(" ", maxClientBody+1), status: 413},
	{what: "PATCH /v1/clients/user:ann", body: "[]", status: 400},
	{what: "PATCH /v1/clients/user:nobody", body: "{}", status: 404},
	{what: "PATCH /v1/clients/user:bob", body: "{\"note\":\"x\"}", status: 409, options: fromFile},
	{what: "PATCH /v1/clients/user:ann", body: "{}", status: 412, headers: []string{`If-Match: "none"`}},
	{what: "PATCH /v1/clients/user:ann", body: strings.Repeat(" ", maxClientBody+1), status: 413},
	{what: "DELETE /v1/clients/user:bob", status: 204},
	{what: "DELETE /v1/clients/bob", status: 400},
	{what: "DELETE /v1/clients/user:nobody", status: 404},
	{what: "DELETE /v1/clients/user:bob", status: 409, options: fromFile},
	{what: "DELETE /v1/clients/user:bob", status: 412, headers: []string{`If-Match: "none"`}},
	{what: "POST /v1/clients/import?dry_run=true", body: strings.Join(someClients, "\n") + "\n{", status: 200},
	{what: "POST /v1/clients/import", body: strings.Repeat("{}\n", 3), status: 200},
	{what: "POST /v1/clients/import?dry_run=1", status: 400},
	{what: "POST /v1/clients/import", body: `{"client":"user:new"}`, status: 409, options: fromFile},
	{what: "POST /v1/clients/import", body: strings.Repeat(" ", MaxImportBody+1), status: 413},
}

const clientsToken = "a-clients-token-of-the-tests"

// A service that manages customers adds a key, moves it, and removes it.
func TestDirectory(t *testing.T) {
	list, err := trust.ParseTokens([]byte("alice admin " + adminToken + "\nbob read " + readerToken + "\nshop clients " + clientsToken))
	if err != nil {
		t.Fatal(err)
	}
	s := newStand(t, Options{Service: manage.Service{Tokens: func() *trust.List { return list }}}).serve()
	shop := as(clientsToken)
	var e EntryAnswer
	r := s.call("PUT /v1/clients/user:a%2Fb", `{"parent":"org:acme","limits":{"api":["5/1m","9/1h"]}}`, shop).want(t, 201, &e)
	if e.Client != "user:a/b" || e.By != "shop" || !e.At.Equal(begin) || r.Header.Get("ETag") != `"`+e.Version+`"` || r.Header.Get("Location") != "/v1/clients/user:a%2Fb" {
		t.Errorf("%s %v", r.body, r.Header)
	}
	s.call("PUT /v1/clients/user:a%2Fb", "{}", shop, "If-None-Match: *").wantProblem(t, fault.VersionConflict, "There is a client with this name already; read it, and change that one.")
	for _, path := range []string{"user:a%2Fb", "user:a/b", "%75ser:a%2fb"} {
		s.call("GET /v1/clients/"+path, "", as(readerToken)).want(t, 200, &e)
		if len(e.Line) != 1 || e.Line[0].Client != "org:acme" || e.Line[0].Tier != "pro" || e.Line[0].Starts != "15" || string(e.Limits["api"]) != `{"limits":["5/1m","9/1h"]}` {
			t.Errorf("%s: %+v", path, e)
		}
	}
	// A merge patch: null removes, what is not there stays.
	var p EntryAnswer
	s.call("PATCH /v1/clients/user:a%2Fb", `{"limits":{"api":null,"queue":"unlimited"},"tier":"pro","parent":null}`, shop, "If-Match: "+r.Header.Get("ETag")).want(t, 200, &p)
	if p.Parent != "" || p.Tier != "pro" || len(p.Limits) != 1 || string(p.Limits["queue"]) != `"unlimited"` || p.Version == e.Version {
		t.Errorf("%+v", p)
	}
	if fmt.Sprint(p.Warnings) != `[{limits of user:a/b for "queue": the rule counts by something else; write the limits to the client that it counts}]` {
		t.Errorf("%v", p.Warnings) // of what has no effect under the rules
	}
	p = EntryAnswer{}
	s.call("PATCH /v1/clients/user:a%2Fb", `{"limits":{"queue":null},"blocked":true}`, shop).want(t, 200, &p)
	if p.Limits != nil || !p.Blocked || p.Tier != "pro" {
		t.Errorf("%+v", p)
	}
	s.call("PATCH /v1/clients/user:a%2Fb", "{}", shop, "If-Match: "+r.Header.Get("ETag")).wantProblem(t, fault.VersionConflict)
	// A reader and a checker must not change clients, and who changes clients must not change rules.
	s.call("PUT /v1/clients/user:x", "{}", as(readerToken)).wantProblem(t, fault.Forbidden, "right clients")
	s.call("GET /v1/rules", "", shop).wantProblem(t, fault.Forbidden)
	s.call("PUT /v1/rules/login", "{}", shop, "If-Match: *").wantProblem(t, fault.Forbidden)
	s.call("DELETE /v1/clients/org:acme", "", shop).wantProblem(t, fault.ClientInUse, "has 1 client below it")
	s.call("DELETE /v1/clients/user:a%2Fb", "", shop).want(t, 204, nil)
	s.call("GET /v1/clients/user:a%2Fb", "", shop).wantProblem(t, fault.NoClient)
	var tiers TiersAnswer
	if s.call("GET /v1/clients/tiers", "", shop).want(t, 200, &tiers); tiers.Clients != 4 || tiers.Tiers["pro"] != 1 {
		t.Errorf("%+v", tiers)
	}
}

// Lists come in pages, in the order of the names.
func TestListClients(t *testing.T) {
	s := newStand(t, Options{})
	for query, want := range map[string]string{
		"":                            "api_key:sha256:f2cdc8c72fd298956aef69228aa88a4d org:acme user:ann user:bob >",
		"?limit=2":                    "api_key:sha256:f2cdc8c72fd298956aef69228aa88a4d org:acme >org:acme",
		"?limit=2&after=org:acme":     "user:ann user:bob >",
		"?parent=org:acme":            "user:ann >",
		"?tier=pro":                   "org:acme >",
		"?kind=user&contains=b":       "user:bob >",
		"?kind=team":                  ">",
		"?parent=user:ann&kind=user:": ">",
	} {
		var a EntriesAnswer
		s.call("GET /v1/clients"+query, "").want(t, 200, &a)
		var got strings.Builder
		for _, e := range a.Clients {
			got.WriteString(e.Client + " ")
		}
		if got.WriteString(">" + a.Next); got.String() != want {
			t.Errorf("%s lists %s, want %s", query, &got, want)
		}
	}
}

// Nobody can put a secret into a URL, a client above itself, or a body of any size into memory.
func TestHostileClients(t *testing.T) {
	s := newStand(t, Options{})
	p := s.call("PUT /v1/clients/api_key:ann-key-1", "{}").wantProblem(t, fault.BadField, "must not have an API key")
	if !strings.Contains(p.Detail, "api_key:sha256:") || strings.Contains(p.Detail, "ann-key-1") || strings.Contains(s.log.String(), "ann-key-1") {
		t.Errorf("%s\n%s", p.Detail, s.log)
	}
	s.call("GET /v1/clients?parent=api_key:ann-key-1", "").wantProblem(t, fault.BadField, "must not have an API key")
	s.call("PUT /v1/clients/user:"+strings.Repeat("x", 1<<20), "{}").wantProblem(t, fault.BadField, "exceed")
	s.call("PUT /v1/clients/user:"+strings.Repeat("x", 500), "{}").wantProblem(t, fault.BadField, "longer than")
	for body, field := range map[string]string{
		`{"parent":"org:none"}`:               "parent",
		`{"parent":"user:x"}`:                 "parent",
		`{"parent":"user:ann"}`:               "parent",
		`{"client":"user:y"}`:                 "client",
		`{"limits":{"api":"5"}}`:              "limits",
		`{"zone":"Mars/Olympus"}`:             "zone",
		`{"tier":"a","tier":"b"}`:             "",
		`{"tier":` + strings.Repeat("[", 999): "",
		`[]`:                                  "",
		``:                                    "",
		"\xff":                                "",
	} {
		r := s.call("PUT /v1/clients/user:x", body)
		if r.StatusCode != 400 || field != "" && !strings.Contains(string(r.body), `"field":"`+field) {
			t.Errorf("%.50s: %s", body, r.body)
		}
	}
	s.call("PATCH /v1/clients/org:acme", `{"parent":"user:ann"}`).wantProblem(t, fault.BadField)
	s.call("PUT /v1/clients/user:x", "{}", `If-Match: "*"`).wantProblem(t, fault.VersionConflict)
	s.call("PUT /v1/clients/user:x", "{}", "If-Match: *").wantProblem(t, fault.NoClient)
	s.call("PUT /v1/clients/user:x", "{}", "If-Match: *", "If-None-Match: *").wantProblem(t, fault.BadField)
	s.call("GET /v1/clients/user:x", "").wantProblem(t, fault.NoClient)
	// An API key that is the name of a client is a key all the same.
	var a CheckAnswer
	s.call("POST /v1/check", `{"api_key":"user:bob","path":"/api/x"}`).want(t, 200, &a)
	if !a.Allowed {
		t.Errorf("a key is taken for the blocked client with its name: %+v", a)
	}
}

// Of those who change one version of a client, one wins.
func TestConcurrentClients(t *testing.T) {
	s := newStand(t, Options{})
	tag := s.call("GET /v1/clients/user:ann", "").want(t, 200, nil).Header.Get("ETag")
	// What a call demands is the version, so that the directory compares it when it writes.
	asked := &call{r: httptest.NewRequest(http.MethodPut, "/", nil)}
	asked.r.Header.Set("If-Match", `"other", W/`+tag)
	if got, err := s.clientCondition(asked, "user:ann"); err != nil || tagOf(got) != tag {
		t.Errorf("the condition is %q, %v", got, err)
	}
	statuses := make([]int, 20)
	var all sync.WaitGroup
	for i := range statuses {
		all.Go(func() {
			statuses[i] = direct(s, "PUT", "/v1/clients/user:ann", fmt.Sprintf(`{"note":"%d"}`, i), "If-Match: "+tag).StatusCode
		})
	}
	all.Wait()
	won := 0
	for _, status := range statuses {
		switch status {
		case http.StatusOK:
			won++
		case http.StatusPreconditionFailed:
		default:
			t.Errorf("the status is %d", status)
		}
	}
	if won != 1 {
		t.Errorf("%d have won", won)
	}
	// Patches without a version all have an effect.
	for i := range statuses {
		all.Go(func() {
			statuses[i] = direct(s, "PATCH", "/v1/clients/user:ann", fmt.Sprintf(`{"limits":{"r%d":"5/1m"}}`, i%4)).StatusCode
		})
	}
	all.Wait()
	var e EntryAnswer
	s.call("GET /v1/clients/user:ann", "").want(t, 200, &e)
	for i, status := range statuses {
		if status == http.StatusOK && e.Limits[fmt.Sprintf("r%d", i%4)] == nil || status != http.StatusOK && status != http.StatusPreconditionFailed {
			t.Errorf("%d, and the limits are %v", status, e.Limits)
		}
	}
}

// Each line of an import is imported or has an error, and who repeats it changes nothing.
func TestImport(t *testing.T) {
	s := newStand(t, Options{})
	lines := "{\n" + // broken
		`{"client":"user:eve","parent":"team:x"}` + "\n\n" + // before its parent
		`{"client":"team:x","parent":"org:acme","tier":"prp"}` + "\r\n" +
		`{"client":"user:ann","parent":"org:acme","limits":{"api":"500/1m"},"note":"contract 4711"}` + "\n" + // as it is
		`{"client":"user:eve"}` + "\n" + // again
		`{"client":"user:lost","parent":"org:none"}` + "\n" +
		`{"client":"api_key:in-clear","parent":"user:eve"}` + "\n" +
		`{"client":"user:bob","deleted":true}` + "\n" +
		`{"client":"user:gone","deleted":true}` + "\n" +
		`{"client":"org:acme","deleted":true,"tier":"pro"}` + "\n" +
		`{"client":"org:acme","deleted":false}` + "\n" +
		`{"client":"user:x","tier":[]}`
	for _, c := range []struct{ query, want string }{
		{"?dry_run=true", "3 0 2 1 [1 6 7 11 12 13]"},
		{"", "3 0 2 1 [1 6 7 11 12 13]"},
		{"", "0 0 6 0 [1 6 7 11 12 13]"},
	} {
		var a ImportAnswer
		r := s.call("POST /v1/clients/import"+c.query, lines).want(t, 200, &a)
		var wrong []int
		for _, e := range a.Errors {
			if len(wrong) == 0 || wrong[len(wrong)-1] != e.Line {
				wrong = append(wrong, e.Line)
			}
		}
		if warned := len(a.Warnings) == 1 && a.Warnings[0].Line == 4; warned != (a.Added > 0) {
			t.Errorf("%s: %+v", c.query, a.Warnings)
		}
		if got := fmt.Sprint(a.Added, a.Changed, a.Unchanged, a.Deleted, wrong); got != c.want {
			t.Errorf("%s: %s, want %s: %s", c.query, got, c.want, r.body)
		}
	}
	// Broken lines count, too, so that the answer is bounded.
	s.call("POST /v1/clients/import", strings.Repeat("{\n", clients.MaxChanges+1)).wantProblem(t, fault.BadField, "maximum of 1000")
	for _, query := range []string{"after=api_key:in-clear", "contains=api_key:in-clear"} {
		s.call("GET /v1/clients?"+query, "").wantProblem(t, fault.BadField, "must not have an API key")
	}
	for _, query := range []string{"after=api_key:sha256:5d4", "contains=api_key:", "contains=key"} {
		s.call("GET /v1/clients?"+query, "").want(t, 200, nil)
	}
	if p := s.call("POST /v1/clients/api_key:in-clear", "").wantProblem(t, fault.MethodNotAllowed); strings.Contains(fmt.Sprintf("%+v", p), "in-clear") {
		t.Error("the answer has a key")
	}
	if s.call("GET /v1/clients/user:eve", "").want(t, 200, nil); strings.Contains(s.log.String(), "in-clear") {
		t.Error("the log has a key")
	}
	many := strings.Repeat(`{"client":"user:n"}`+"\n", clients.MaxChanges+1)
	n := 0
	many = string([]byte(strings.Join(strings.Split(many, "user:n"), "user:%d")))
	numbers := make([]any, clients.MaxChanges+1)
	for i := range numbers {
		numbers[i], n = n, n+1
	}
	s.call("POST /v1/clients/import", fmt.Sprintf(many, numbers...)).wantProblem(t, fault.BadField, "maximum of 1000")
	exported := s.call("GET /v1/clients/export", "").want(t, 200, nil)
	if kind := exported.Header.Get("Content-Type"); kind != "application/x-ndjson" {
		t.Errorf("an export is %s", kind)
	}
	// What was exported is what an import takes.
	empty := clients.New(clients.Options{Logger: slog.New(slog.DiscardHandler)})
	testkit.OK(t, empty.Look(t.Context()))
	other := newStand(t, Options{Service: manage.Service{Clients: empty}})
	var a ImportAnswer
	other.call("POST /v1/clients/import", string(exported.body)).want(t, 200, &a)
	if again := other.call("GET /v1/clients/export", "").want(t, 200, nil); a.Added != 6 || len(a.Errors) > 0 || sorted(again.body) != sorted(exported.body) {
		t.Errorf("%+v\n%s\nis imported as\n%s", a, exported.body, again.body)
	}
}

// A dry run says what an import would do, and prune deletes what no line has. Both take the clients as a document, too.
func TestImportPreview(t *testing.T) {
	s := newStand(t, Options{})
	const (
		yaml = "# all of them\nclients:\n  - {client: \"org:acme\", tier: free, zone: Europe/Berlin, starts: 15}\n  - {client: \"user:ann\", parent: \"org:acme\"}\n"
		json = `{"clients": [{"client": "user:ann", "parent": "org:acme"}]}`
		ann  = `{"client":"user:ann","parent":"org:acme"}` + "\n"
	)
	for _, c := range []struct{ query, body, want string }{
		{"?dry_run=true&prune=true", yaml, "0 2 0 2 [] 3:org:acme:pro>free 4:user:ann:> 0:api_key:sha256:f2cdc8c72fd298956aef69228aa88a4d:- 0:user:bob:-"},
		{"?dry_run=true", yaml, "0 2 0 0 [] 3:org:acme:pro>free 4:user:ann:>"},
		{"?dry_run=true", json, "0 1 0 0 [] 1:user:ann:>"},
		{"?dry_run=true&prune=true", json, "0 1 0 0 [1 parent] 1:user:ann:>"},
		{"?dry_run=true&prune=true", ann + `{"client":"org:acme","deleted":true}`, "0 1 0 0 [2 deleted 2 ] 1:user:ann:>"},
		{"?dry_run=true", `{"client":"org:acme","deleted":true}`, "0 0 0 0 [1 ]"},
		{"?dry_run=true", `{"client":"user:new","tier":"pro"}` + "\n" + `{"client":"api_key:k","parent":"user:new"}`, "2 0 0 0 [] 1:user:new:+pro 2:api_key:sha256:5493fecab15fd4dc897f19617619e444:+"},
		{"?dry_run=true&assumed=1", `{"client":"user:new","tier":"pro"}` + "\n" + `{"client":"user:new2","parent":"user:new"}`, "0 0 0 0 [2 parent]"},
		{"?dry_run=true&assumed=1", `{"client":"org:new","tier":[]}` + "\n" + ann, "0 1 0 0 [] 2:user:ann:>"},
		{"?dry_run=true&assumed=1", `{"client":"org:new","tier":"pro"}` + "\n" + `{"client":"user:ann","parent":"org:new"}`, "0 1 0 0 [] 2:user:ann:>"},
		{"?prune=true", json, "0 1 0 0 [1 parent]"}, // and nothing is pruned
		{"?prune=true", yaml, "0 1 1 2 []"},
		{"?prune=true", yaml, "0 0 2 0 []"},
	} {
		var a ImportAnswer
		s.call("POST /v1/clients/import"+c.query, c.body).want(t, 200, &a)
		var wrong []string
		for _, e := range a.Errors {
			wrong = append(wrong, fmt.Sprint(e.Line, " ", e.Field))
		}
		got := fmt.Sprint(a.Added, a.Changed, a.Unchanged, a.Deleted, wrong)
		for _, change := range a.Changes {
			was, is := change.Before, change.After
			switch {
			case was == nil:
				got += fmt.Sprintf(" %d:%s:+%s", change.Line, is.Client, is.Tier)
			case is == nil:
				got += fmt.Sprintf(" %d:%s:-", change.Line, was.Client)
			default:
				got += fmt.Sprintf(" %d:%s:%s>%s", change.Line, is.Client, was.Tier, is.Tier)
			}
		}
		if got != c.want {
			t.Errorf("%s %s: %s, want %s", c.query, c.body, got, c.want)
		}
	}
	// A client that is deleted does not keep others from where they belong, unless another line is wrong.
	s.call("POST /v1/clients/import?prune=true", `{"client":"org:o"}`+"\n"+`{"client":"team:t","parent":"org:o"}`).want(t, 200, nil)
	const turned = `{"client":"org:o","parent":"team:u"}` + "\n" + `{"client":"team:u"}`
	for _, c := range []struct{ query, body, want string }{
		{"?prune=true&dry_run=true", turned, "1 1 0 1 0"},
		{"?prune=true", turned + "\n" + `{"client":"org:p","parent":"org:o"}`, "1 0 0 0 2"},
		{"?prune=true", turned, "0 1 1 1 0"},
	} {
		var a ImportAnswer
		s.call("POST /v1/clients/import"+c.query, c.body).want(t, 200, &a)
		if got := fmt.Sprint(a.Added, a.Changed, a.Unchanged, a.Deleted, len(a.Errors)); got != c.want {
			t.Errorf("%s %s: %s, want %s: %v", c.query, c.body, got, c.want, a.Errors)
		}
	}
	s.call("POST /v1/clients/import?prune=true", `{"client":"org:acme"}`).want(t, 200, nil)
	for query, field := range map[string]string{"?assumed=1": "assumed", "?assumed=1&dry_run=true&prune=true": "assumed", "?prune=1": "prune"} {
		if p := s.call("POST /v1/clients/import"+query, ann).wantProblem(t, fault.BadField); p.Field != field {
			t.Errorf("%s: %+v", query, p)
		}
	}
	for body, words := range map[string]string{"": "would delete all", "clients: []": "would delete all", "users: []": "only the list of clients", "hello": "only the list", "a\n  b: [": ":2:", "clients: 5": "only the list"} {
		s.call("POST /v1/clients/import?prune=true", body).wantProblem(t, fault.BadBody, words)
	}
	lines := func(n int) (all string) {
		for i := range n {
			all += fmt.Sprintf(`{"client":"user:n%d"}`+"\n", i)
		}
		return all
	}
	s.call("POST /v1/clients/import", lines(clients.MaxChanges)).want(t, 200, nil)
	s.call("POST /v1/clients/import?prune=true", ann+`{"client":"org:acme"}`).want(t, 200, nil)
	s.call("POST /v1/clients/import", lines(clients.MaxChanges)).want(t, 200, nil)
	s.call("POST /v1/clients/import?prune=true", `{"client":"org:acme"}`).wantProblem(t, fault.BadField, "would delete 1001 clients")
	var a ImportAnswer
	s.call("POST /v1/clients/import?prune=true&dry_run=true", `{"client":"org:acme"}`).want(t, 200, &a)
	if a.Deleted != clients.MaxChanges+1 || len(a.Changes) != maxShown {
		t.Errorf("%+v", a)
	}
	s.call("GET /v1/clients/user:n1", "").want(t, 200, nil)
	newStand(t, fromFile).call("POST /v1/clients/import?dry_run=true", ann).wantProblem(t, fault.ClientsReadOnly)
}

// exporter is a stand with a server that buffers little, and with more clients than fit into its buffers.
func exporter(t *testing.T, patience time.Duration) *stand {
	var all strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&all, "{\"client\": \"user:%d\", \"note\": \"contract %d\"}\n", i, i)
	}
	d, problems, err := rule.ReadDirectory("", strings.NewReader(all.String()))
	testkit.OK(t, cmp.Or(err, problems.Err()))
	r := clients.New(clients.Options{})
	r.Show(d)
	s := newStand(t, Options{Service: manage.Service{Clients: r, Tokens: tokens(t)}})
	s.patience = patience
	s.server = httptest.NewUnstartedServer(s)
	s.server.Config.ConnContext = smallBuffers
	s.server.Start()
	t.Cleanup(s.server.Close)
	return s
}

// export begins an export, and reads the beginning of its answer.
func (s *stand) export(token string) (net.Conn, *http.Response) {
	s.t.Helper()
	conn := testkit.Must(net.Dial("tcp", s.server.Listener.Addr().String()))(s.t)
	s.t.Cleanup(func() { conn.Close() })
	testkit.OK(s.t, conn.(*net.TCPConn).SetReadBuffer(4<<10))
	fmt.Fprintf(conn, "GET /v1/clients/export HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n%s\r\n\r\n", as(token))
	r := testkit.Must(http.ReadResponse(bufio.NewReaderSize(conn, 16), nil))(s.t)
	return conn, r
}

// exporters waits until so many exports are being answered.
func (s *stand) exporters(want int) {
	s.t.Helper()
	waitFor(s.t, func() bool {
		s.exporting.mu.Lock()
		defer s.exporting.mu.Unlock()
		return s.exporting.here == want && (want > 0 || len(s.exporting.of) == 0)
	})
}

// One caller that does not read its exports keeps nobody else from theirs, and all callers together have a maximum.
func TestExportsOfOneCaller(t *testing.T) {
	s := exporter(t, time.Hour)
	var deaf []net.Conn
	for range maxOwnExports {
		conn, r := s.export(readerToken)
		if r.StatusCode != 200 {
			t.Fatal(r.Status)
		}
		deaf = append(deaf, conn)
	}
	if _, r := s.export(readerToken); r.StatusCode != fault.Busy.Status {
		t.Errorf("one export more is %s", r.Status)
	}
	_, r := s.export(adminToken)
	if body, err := io.ReadAll(r.Body); err != nil || bytes.Count(body, []byte("\n")) != 20_000 {
		t.Errorf("the export of another has %d bytes: %v", len(body), err)
	}
	for _, conn := range deaf {
		conn.Close()
	}
	s.exporters(0)
	if _, r := s.export(readerToken); r.StatusCode != 200 {
		t.Errorf("after the others have ended, an export is %s", r.Status)
	}
	var all exports
	for i := range maxExporting {
		if _, ok := all.begin(fmt.Sprint(i)); !ok {
			t.Errorf("%d exports are too many", i+1)
		}
	}
	if most, ok := all.begin("another"); ok || most != maxExporting {
		t.Errorf("there is no maximum, or %d", most)
	}
}

// Who stops reading an export is dropped, and sees that it is not whole.
func TestExportToTheDeaf(t *testing.T) {
	s := exporter(t, 100*time.Millisecond)
	_, r := s.export(readerToken)
	s.exporters(0)
	if body, err := io.ReadAll(r.Body); err == nil {
		t.Errorf("the export looks whole with %d bytes", len(body))
	}
}

// So is who always reads a little.
func TestExportTooSlow(t *testing.T) {
	s := exporter(t, time.Hour)
	_, r := s.export(readerToken)
	if _, err := io.ReadFull(r.Body, make([]byte, 2*exportPiece)); err != nil {
		t.Fatal(err)
	}
	s.now.Add(time.Minute.Microseconds())
	body, err := io.ReadAll(r.Body)
	s.server.Close() // all is in the log then
	if err == nil || len(body) > 4*exportPiece || !strings.Contains(s.log.String(), "read too slowly") || !strings.Contains(s.log.String(), "caller=bob") {
		t.Errorf("%d bytes, %v; %s", len(body), err, s.log)
	}
}

// sorted has the lines of a text in order.
func sorted(text []byte) string {
	return strings.Join(slices.Sorted(strings.Lines(string(text))), "")
}
