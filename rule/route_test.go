package rule_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/rule"
)

// The key of a rule that Match found is composed of the pattern that it found. It is the key that
// comes of reading the path, whatever other patterns and rules there are.
func TestMatchFindsTheRoute(t *testing.T) {
	patterns := []string{"/**", "/a", "/a/**", "/a/{x}", "/a/{y}", "/a/{x}/**", "/a/b", "/a/b/**", "/a/b/{x}", "/{x}/b", "/{x}/{y}", "/{x}/**", "/b/a/c", "/c/**"}
	paths := []string{"/", "/a", "/a/b", "/a/b/", "/a/b/c", "/a/c", "/b/b", "/b/a/c", "/b/c/d/e", "/c", "/a/x/../b", "/a//b", "/a;v/b", "/a%2Fb", "/%61/b", "/c/..;/a"}
	hosts := []string{"a.example", "*.example", "*.b.example", "*"}
	rapid.Check(t, func(t *rapid.T) {
		var rules []rule.Rule
		for i := range rapid.SampledFrom([]int{1, 3, 6, 40}).Draw(t, "rules") {
			m := rule.Match{Paths: rapid.SliceOfNDistinct(rapid.SampledFrom(patterns), 0, len(patterns), rapid.ID).Draw(t, "paths")}
			if rapid.Bool().Draw(t, "narrow") {
				m.Hosts, m.Methods = hosts, []string{"GET", "*"}
			}
			r := limited(fmt.Sprint(i), m)
			r.Key = []rule.Source{{Kind: rule.Host}, {Kind: rule.Route}, {Kind: rule.Method}}
			rules = append(rules, r)
		}
		table, err := rule.Compile(&rule.Set{Rules: rules}, rule.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			req := rule.Request{Method: "GET", Host: "a.b.example", Path: path}
			for _, hit := range table.Match(nil, &req) {
				keys, ends, err := hit.Identities(nil, nil, &req)
				want, wantEnds, wantErr := rule.Hit{Entry: hit.Entry}.Identities(nil, nil, &req)
				if string(keys) != string(want) || !slices.Equal(ends, wantEnds) || err != nil || wantErr != nil || len(ends) == 0 {
					t.Fatalf("%s of %q: the keys are %q %v, %v, want %q %v, %v", path, hit.Match.Paths, keys, ends, err, want, wantEnds, wantErr)
				}
			}
		}
	})
}
