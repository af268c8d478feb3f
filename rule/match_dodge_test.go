package rule_test

import (
	"slices"
	"testing"

	"github.com/weirhq/weir/rule"
)

// However a client writes a path, if a common server takes it for one that a rule
// is for, the rule applies.
func TestPathsCannotDodge(t *testing.T) {
	for pattern, dodges := range map[string][]string{
		"/api/login": {
			"/api//login", "//api/login", "/api/login/", "/api/login//", "/api/./login", "/./api/login",
			"/api/x/../login", "/x/../api/login", "/../api/login", "/api/login/.", "/api/login/x/..",
			"/api/%6Cogin", "/api/%6cogin", "/%61%70%69/%6c%6f%67%69%6e", "/api/%2e/login", "/api/x/%2e%2e/login", "/api/x/.%2E/login",
			"/api%2Flogin", "/api%2flogin", "/api%2F%2Flogin", "/api/x%2F..%2Flogin", // nginx, gin
			`/api\login`, "/api%5Clogin", `/api\x\..\login`, // IIS
			"/api/login;v=1", "/api;x/login;y", "/api/x/..;/login", "/api/login;", "/api/login%3Bv", // Tomcat
			"/api//../login", "/api/;/login", // browsers' and RFC 3986's dots
			"/api/login.", "/api/login..", "/api/login...", "/api/login%20", "/api/login .", "/api/login%2E%20.", "/api/login/..", "/api/login/...", // Caddy
			"/api/login./.", "/api/login./x/..", "/api%2Flogin.", "/api/login%2F..", "/api/login/%2e%2e/..", "/api/%2e%2e/../login", "/api/login/a%2F../b%2F../..", `/api/login%2f..;v=1/..`, `/api/login%2f..\x/..`,
			"/api/login?x", "/api/login?/../..", "/api/login/?", "api/login",
		},
		"/search/{q}": {"/search/..", "/search/.", "/search/%2e%2e", "/search%2F..", "/search/a%2Fb", "/search/;x/..", "/search/a;b"},
		"/files/**":   {"/files/../etc", "/files/..", "/files/a/../..", "/files%2F..%2F..%2Fx", "/x/../files", "/files/..;/..;/x"},
		"/api/jobs:run": {
			"/api/jobs%3Arun", "/api/jobs%3arun", "/api/%6aobs:run",
		},
	} {
		table := compile(t, rule.Options{}, limited("r", rule.Match{Paths: []string{pattern}}))
		for _, path := range dodges {
			if len(table.Match(nil, &rule.Request{Path: path})) != 1 {
				t.Errorf("%s dodges %s", path, pattern)
			}
		}
	}
}

// A rule that spells out a strange path is not the only one for it.
func TestStrangePathsOfRulesAreRead(t *testing.T) {
	login := limited("login", rule.Match{Paths: []string{"/api/login"}})
	for _, path := range []string{"/api/login;v=1", "/api%2Flogin", "/api/x%5C..%5Clogin"} {
		table := compile(t, rule.Options{}, login, limited("strange", rule.Match{Paths: []string{path}}))
		if got := idsOf(table.Match(nil, &rule.Request{Path: path})); !slices.Equal(got, []string{"login", "strange"}) {
			t.Errorf("%s matches %v", path, got)
		}
	}
}

// Other readings are of strange paths only: an ordinary one has its own meaning.
func TestOrdinaryPathsHaveOneReading(t *testing.T) {
	table := compile(t, rule.Options{}, limited("r", rule.Match{Paths: []string{"/api/login"}}))
	for _, path := range []string{"/api/Login", "/api/login.html", "/api/login.x", "/api/.login", "/api./login", "/api/%20login", "/api/login%09", "/api/login%2525", "/api-login", "/api/login%252F", "/api/%256Cogin", "/api.login"} {
		if len(table.Match(nil, &rule.Request{Path: path})) != 0 {
			t.Errorf("%s is taken for /api/login", path)
		}
	}
}
