package rule_test

import (
	"fmt"
	"net/netip"

	"github.com/weirhq/weir/rule"
	_ "github.com/weirhq/weir/rule/rulefile" // reads YAML
)

// A document is read into a set, and a set is made a table, in which requests are looked
// up. An engine does the last step by itself.
func Example() {
	set, err := rule.Usable("rules.yaml", []byte(`
rules:
  - id: api
    match: {path: /api/**}
    key: ip
    limit: 100/1m
  - id: login
    match: {path: /api/login, method: POST}
    key: [ip, user]
    limit: 5/1m
    on_failure: local
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	request := &rule.Request{IP: netip.MustParseAddr("203.0.113.7"), User: "alice", Method: "POST", Path: "/api/login"}
	for _, r := range table.Match(nil, request) {
		identity, _ := r.Identity(nil, request)
		fmt.Printf("%s: %s of %s\n", r.ID, r.Quota.Rates[0], identity)
	}
	// Output:
	// api: 100/1m of ip:203.0.113.7
	// login: 5/1m of ip:203.0.113.7|user:alice
}

// Parse reports everything that is wrong at once, each with its place and the field.
func ExampleParse() {
	_, problems := rule.Parse("rules.yaml", []byte("rules:\n  - id: api\n    key: ip\n    limit: 100/minit\n    mod: shadow\n"))
	for _, p := range problems {
		fmt.Printf("line %d, %s: %s\n", p.Line, p.Field, p.Message)
	}
	// Output:
	// line 4, limit: limit: bad duration "minit"; did you mean "100/minute"?
	// line 5, mod: a rule has no field "mod"; did you mean "mode"?
}
