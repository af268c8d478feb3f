package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/server/httpapi"
	"github.com/weirhq/weir/rule"
)

func TestRulesList(t *testing.T) {
	r := serveRules(t, loginAndAPI+`  - id: all
    key: [user, "header:X-Tenant"]
    algorithm: sliding_log
    limits: [3/1m, 20/1h]
    tiers: {pro: 9/1m, batch: unlimited}
    overrides: {"user:alice|header:X-Tenant:a": 5/1m}
    mode: shadow
    match: {host: "*.example.com", attributes: {action: [post, edit], region: "*"}}
  - {id: bucket, key: global, limit: 10/1s, burst: 20}
  - {id: long, key: ip, limit: 1/1s, match: {path: [/aaaaaaaaaaaaaaaaaaaa, /bbbbbbbbbbbbbbbbbbbb, /cccccccccccccccccccc]}}
exempt: {user: [healthcheck], ip: [10.0.0.0/8]}
block: {ip: [198.51.100.0/24]}
`, "")
	const want = `id      mode     key                     limit                                           match                                                         other fields
login   enforce  ip                      fixed_window 5/1m                               POST /api/login                                               on_failure: local, deny: {code: 10007, message: too many logins}
api     enforce  user                    token_bucket 100/1m                             /api/**                                                       -
all     shadow   user + header:X-Tenant  sliding_log 3/1m, 20/1h + 2 tiers + 1 override  *.example.com action=post,edit region=*                       -
bucket  enforce  global                  token_bucket 10/1s burst 20                     everything                                                    -
long    enforce  ip                      token_bucket 1/1s                               /aaaaaaaaaaaaaaaaaaaa,/bbbbbbbbbbbbbbbbbbbb,/cccccccccccccc…  -

5 rules in version 1, 2 exempt, 1 blocked
`
	got := r.on(t, "rules", "list")
	if got.code != 0 || got.stdout != want || got.stderr != "" {
		t.Errorf("exit code %d\n%s\nwant\n%s%s", got.code, got.stdout, want, got.stderr)
	}
	got = r.on(t, "rules", "list", "--output", "json")
	var all httpapi.RulesAnswer
	if err := json.Unmarshal([]byte(got.stdout), &all); err != nil || all.Version != 1 {
		t.Errorf("%v\n%s", err, got.stdout)
	}
	serveRules(t, "rules: []\n", "").on(t, "rules", "list").want(t, 0, `\A0 rules in version 1\n\z`, "")
}

func TestRulesGet(t *testing.T) {
	r := serveRules(t, loginAndAPI, "")
	if got := r.on(t, "rules", "get"); got.code != 0 || got.stdout != loginAndAPI {
		t.Errorf("exit code %d\n%s", got.code, got.stdout)
	}
	got := r.on(t, "rules", "get", "login")
	if _, problems := rule.ParseRule("", []byte(got.stdout)); problems.Err() != nil || !strings.HasPrefix(got.stdout, "id: login\n") {
		t.Errorf("%v\n%s", problems, got.stdout)
	}
	got = r.on(t, "rules", "get", "login", "--output", "json")
	var one rule.Rule
	if err := json.Unmarshal([]byte(got.stdout), &one); err != nil || one.ID != "login" {
		t.Errorf("%v\n%s", err, got.stdout)
	}
	r.on(t, "rules", "get", "--output", "json").want(t, 0, `"version": 1`, "")
	r.on(t, "rules", "get", "logn").want(t, 1, "", `^weir: there is no such rule; weir rules list shows all rules\n\z`)
	// An id is one segment, whatever is in it.
	for _, id := range []string{"..", "../history", "a/b", "?format=yaml", "%2e%2e"} {
		r.on(t, "rules", "get", id).want(t, 1, "", `^weir: (there is no such rule|the API has no such path)`)
	}
}

func TestRulesPutDocument(t *testing.T) {
	r := serveRules(t, loginAndAPI, "")
	changed := strings.Replace(loginAndAPI, "5/1m", "10/1m", 1)
	name := file(t, "rules.yaml", changed)
	r.on(t, "rules", "put", name, "--dry-run").want(t, 0, `^would change: login: limit 5/1m → 10/1m; nothing was written\n\z`, "")
	if r.number(t) != 1 {
		t.Fatal("a dry run has written something")
	}
	r.on(t, "rules", "put", name).want(t, 0, `^version 2: login: limit 5/1m → 10/1m\n\z`, "")
	if got := r.source(t); got != changed {
		t.Errorf("the document is\n%s", got)
	}
	// It is in force at once.
	r.on(t, "check", "--method", "POST", "--path", "/api/login", "--ip", "192.0.2.1").want(t, 0, "login has 9 of 10 remaining", "")
	r.on(t, "rules", "put", name).want(t, 0, `^version 2 is the same already; nothing was written\n\z`, "")
	r.on(t, "rules", "put", name, "--dry-run").want(t, 0, `^no changes\n\z`, "")
	command(t, "rules: []\n", "rules", "put", "-", "--summary", "no rules", "--server", r.URL).want(t, 0, `^version 3: no rules\n\z`, "")
	got := r.on(t, "rules", "put", name, "--output", "json")
	var written httpapi.WriteAnswer
	if err := json.Unmarshal([]byte(got.stdout), &written); err != nil || written.Version.Number != 4 {
		t.Errorf("%v\n%s", err, got.stdout)
	}
}

func TestRulesPutRule(t *testing.T) {
	r := serveRules(t, loginAndAPI, "")
	name := file(t, "login.yaml", "id: login\nkey: ip\nlimit: 7/1m\non_failure: local\nmatch: {method: POST, path: /api/login}\n")
	r.on(t, "rules", "put", name, "--dry-run").want(t, 0, `^would change: login: .*7/1m.*; nothing was written\n\z`, "")
	r.on(t, "rules", "put", name).want(t, 0, `^version 2: login: .*7/1m`, "")
	if got := r.source(t); !strings.HasPrefix(got, "# who may do what\nrules:\n  - id: login # guessing\n") || !strings.Contains(got, "id: api") || !strings.Contains(got, "limit: 7/1m") {
		t.Errorf("the document is\n%s", got)
	}
	added := file(t, "search.json", `{"id": "search", "key": "user", "limit": "3/1s"}`)
	r.on(t, "rules", "put", added).want(t, 0, `^version 3: added search`, "")
	r.on(t, "rules", "put", added, "--id", "login").want(t, 2, "", `--id: the rule in .*search.json is "search", not "login"`)

	// One rule of a document.
	document := file(t, "rules.yaml", strings.Replace(loginAndAPI, "100/1m", "50/1m", 1))
	r.on(t, "rules", "put", document, "--id", "api").want(t, 0, `^version 4: api: limit 100/1m → 50/1m\n\z`, "")
	r.on(t, "rules", "put", document, "--id", "nobody").want(t, 2, "", `--id: .*rules.yaml has no rule "nobody"`)
	// What get prints, put takes back.
	same := r.on(t, "rules", "get", "api")
	command(t, strings.Replace(same.stdout, "50/1m", "60/1m", 1), "rules", "put", "-", "--server", r.URL).want(t, 0, "^version 5: api: limit 50/1m → 60/1m", "")
}

func TestRulesPutBadRules(t *testing.T) {
	r := serveRules(t, loginAndAPI, "")
	bad := file(t, "bad.yaml", "rules:\n- id: x\n  kee: ip\n  limit: 5/1m\n")
	for _, flags := range [][]string{nil, {"--dry-run"}} {
		got := r.on(t, append([]string{"rules", "put", bad}, flags...)...)
		got.want(t, 1, "", `bad.yaml:3:3: error: a rule has no field "kee"; did you mean "key"\? \[E005\]\n      kee: ip\n      \^$`)
		got.want(t, 1, "", `^weir: .*bad.yaml cannot be used; it has 1 error; nothing was written\n\z`)
	}
	rule := file(t, "rule.yaml", "id: x\nkey: ip\nlimit: 5\n")
	r.on(t, "rules", "put", rule).want(t, 1, "", `rule.yaml:3:8: error: limit: "5" is not a rate`)
	for _, content := range []string{"", "- 1", "nonsense", "a: [", "nonsense: 1", "rule: {}"} {
		r.on(t, "rules", "put", file(t, "x.yaml", content)).want(t, 1, "", "x.yaml|has no rules")
	}
	// A rule that is good by itself, and not beside the others.
	same := file(t, "same.yaml", "id: login2\nmatch: {method: POST, path: /api/login}\nkey: ip\nalgorithm: fixed_window\nlimit: 5/1m\non_failure: local\n")
	for _, flags := range [][]string{nil, {"--dry-run"}} {
		r.on(t, append([]string{"rules", "put", same}, flags...)...).want(t, 1, "", `^\S+same.yaml: error: .*\[E025\]\nweir: \S+same.yaml cannot be used; it has 1 error; nothing was written\n\z`)
	}
	if r.number(t) != 1 || r.source(t) != loginAndAPI {
		t.Error("something was written")
	}
}

func TestRulesPutWarns(t *testing.T) {
	r := serveRules(t, loginAndAPI, "")
	doubtful := file(t, "doubtful.yaml", "rules:\n  - id: login\n    match: {path: /login}\n    key: ip\n    limit: 5/1m\n")
	r.on(t, "rules", "put", doubtful, "--dry-run").want(t, 0, "^would change: ", `doubtful.yaml:\d+:\d+: warning: .*\[W006\]`)
	r.on(t, "rules", "put", doubtful).want(t, 0, "^version 2: ", `doubtful.yaml:\d+:\d+: warning: .*\[W006\]`)
}

func TestRulesPutSaysWhenCommentsAreLost(t *testing.T) {
	// A document in one line cannot be edited line by line.
	r := serveRules(t, "{rules: [{id: a, key: ip, limit: 1/1s}]} # all of it\n", "")
	r.on(t, "rules", "put", file(t, "b.yaml", "id: b\nkey: ip\nlimit: 2/1s\n")).want(t, 0, "^version 2: added b", "^weir: the document lost its comments")
}

func TestLostRace(t *testing.T) {
	r := serveRules(t, loginAndAPI, "alice admin "+adminToken+"\nbob admin "+readToken)
	t.Setenv("WEIR_TOKEN", adminToken)
	name := file(t, "rules.yaml", strings.Replace(loginAndAPI, "5/1m", "10/1m", 1))
	r.on(t, "rules", "put", name, "--if-version", "1").want(t, 0, "^version 2: ", "")
	t.Setenv("WEIR_TOKEN", readToken)
	const lost = `^weir: the rules were changed meanwhile, to version 2 by alice \(login: limit 5/1m → 10/1m\); look at them with weir rules get, then try again\n\z`
	for _, verb := range [][]string{{"rules", "put", file(t, "x.yaml", "id: x\nkey: ip\nlimit: 1/1s\n")}, {"rules", "put", file(t, "rules.yaml", loginAndAPI)}, {"rules", "delete", "login"}, {"rules", "rollback", "1"}} {
		r.on(t, append(verb, "--if-version", "1")...).want(t, 1, "", lost)
	}
	if r.number(t) != 2 {
		t.Error("something was written")
	}
	r.on(t, "rules", "delete", "login").want(t, 0, "^version 3: removed login", "")
}

// Somebody writes just after the version was read.
func TestRaceWithinACommand(t *testing.T) {
	r := serveRules(t, loginAndAPI, "")
	v, err := r.repo.Current(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	hook := &meanwhile{next: r.handler, method: "DELETE", do: func() {
		draft := repo.Draft{Base: v.Number, Author: "eve", Summary: "was faster", Source: []byte(strings.Replace(loginAndAPI, "5/1m", "6/1m", 1))}
		if _, err := r.repo.Write(context.Background(), draft); err != nil {
			t.Error(err)
		}
	}}
	r.Config.Handler = hook
	r.on(t, "rules", "delete", "api").want(t, 1, "", `meanwhile, to version 2 by eve \(was faster\); look at them`)
	if !strings.Contains(r.source(t), "id: api") {
		t.Error("the rule is gone")
	}
}

func TestDeleteHistoryRollback(t *testing.T) {
	r := serveRules(t, loginAndAPI, "")
	r.on(t, "rules", "delete", "nobody").want(t, 1, "", `^weir: there is no such rule; weir rules list shows all rules\n\z`)
	r.on(t, "rules", "delete", "api", "--summary", "not needed").want(t, 0, `^version 2: not needed\n\z`, "")
	if got := r.source(t); strings.Contains(got, "id: api") || !strings.Contains(got, "# guessing") {
		t.Errorf("the document is\n%s", got)
	}
	r.on(t, "rules", "rollback", "1").want(t, 0, `^version 3: rolled back to 1: added api\n\z`, "")
	if r.source(t) != loginAndAPI {
		t.Error("the document is not the first one")
	}
	r.on(t, "rules", "history").want(t, 0, `\Aversion +time +author +summary\n3 +20\d\d-\d\d-\d\d \d\d:\d\d:\d\d +http +rolled back to 1: added api\n2 .*not needed\n1 `, "")
	if got := r.on(t, "rules", "history", "1"); got.stdout != loginAndAPI {
		t.Errorf("version 1 is\n%s%s", got.stdout, got.stderr)
	}
	r.on(t, "rules", "history", "2", "--output", "json").want(t, 0, `"summary": "not needed"`, "")
	r.on(t, "rules", "history", "--output", "json").want(t, 0, `"versions": \[`, "")
	r.on(t, "rules", "history", "99").want(t, 1, "", "^weir: there is no such version, or it is no longer kept; weir rules history lists the versions$")
	r.on(t, "rules", "rollback", "99").want(t, 1, "", "^weir: there is no such version, or it is no longer kept; weir rules history lists the versions$")
	r.on(t, "rules", "rollback", "2", "--output", "json").want(t, 0, `"number": 4`, "")
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		command(t, "", "completion", shell).want(t, 0, "weir", "")
	}
	r := serveRules(t, loginAndAPI, "")
	complete := func(words ...string) []string {
		got := command(t, "", append([]string{"__complete"}, words...)...)
		lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
		return lines[:len(lines)-1] // the last is for the shell
	}
	for _, verb := range []string{"get", "delete"} {
		if got := complete("rules", verb, "--server", r.URL, ""); strings.Join(got, ";") != "login\tstop password guessing;api" {
			t.Errorf("%s is completed by %q", verb, got)
		}
		if got := complete("rules", verb, "--server", r.URL, "a"); strings.Join(got, ";") != "api" {
			t.Errorf("%s a is completed by %q", verb, got)
		}
		if got := complete("rules", verb, "--server", r.URL, "api", ""); len(got) > 0 {
			t.Errorf("a second id is completed by %q", got)
		}
	}
	if got := complete("rules", "get", "--server", nobody, ""); len(got) > 0 {
		t.Errorf("without a server there is %q", got)
	}
	// One that hangs is not waited for, whatever is said of other questions.
	release := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer hanging.Close()
	defer close(release)
	if got := complete("rules", "get", "--server", hanging.URL, "--timeout", "1h", ""); len(got) > 0 {
		t.Errorf("a server that hangs says %q", got)
	}
	if got := complete("check", "--output", ""); strings.Join(got, ";") != "text;json" {
		t.Errorf("--output is completed by %q", got)
	}
	if got := complete("completion", ""); strings.Join(got, ";") != "bash;zsh;fish;powershell" {
		t.Errorf("completion is completed by %q", got)
	}
}

// A file that cannot be read is told before anybody is asked.
func TestPutReadsFirst(t *testing.T) {
	r := serveRules(t, loginAndAPI, "")
	r.on(t, "rules", "put", filepath.Join(t.TempDir(), "none.yaml")).want(t, 1, "", "none.yaml: no such file")
	large := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(large, make([]byte, rule.MaxDocument+1), 0o600); err != nil {
		t.Fatal(err)
	}
	r.on(t, "rules", "put", large).want(t, 1, "", "larger than 4 MiB")
}
