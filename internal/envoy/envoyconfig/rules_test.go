package envoyconfig

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/rule"
)

// TestRules holds what becomes of a configuration against what is beside it, and finds
// that it compiles.
func TestRules(t *testing.T) {
	found, err := filepath.Glob("testdata/rules/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		if strings.HasSuffix(path, ".golden") {
			continue
		}
		config, problems := Read(filesOf(t, path), Options{})
		if config == nil {
			t.Fatal(problems)
		}
		set, notes := config.Rules()
		text := string(rule.Format(set))
		for _, n := range notes {
			text += "# " + n + "\n"
		}
		golden(t, path+".golden", text)
		if problems := rule.Validate(path, set); problems.Err() != nil {
			t.Errorf("%s: %v", path, problems)
		}
		if _, err := rule.Compile(set, rule.Options{}); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// What was imported limits whom the file limits.
func TestRulesMeanTheSame(t *testing.T) {
	config := read(t, `
domain: edge
descriptors:
  - {key: user, rate_limit: {unit: minute, requests_per_unit: 10}}
  - {key: user, value: alice, rate_limit: {unit: minute, requests_per_unit: 50}}
  - {key: user, value: health}
  - key: path
    value: /login
    descriptors: [{key: ip, rate_limit: {unit: hour, requests_per_unit: 3}}]
`)
	set, _ := config.Rules()
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for list, want := range map[string]string{
		"user=bob": "fixed_window 10/1m", "user=alice": "fixed_window 50/1m", "user=health": "", "path=/login": "",
		"path=/login,ip=1": "fixed_window 3/1h", "path=/,ip=1": "",
	} {
		req := &rule.Request{Attributes: map[string]string{}}
		q := query(list)
		for _, e := range q.Entries {
			req.Attributes[e.Key] = e.Value
		}
		var got []string
		for _, x := range table.Explain(req) {
			if x.Applies {
				for _, l := range x.Limits {
					got = append(got, l.Limit().String())
				}
			}
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s: %s, want %s", list, text, want)
		}
		node := config.Domain("edge").Find(q)
		if (node != nil) != (want != "") {
			t.Errorf("%s: the file says %+v", list, node)
		}
	}
}
