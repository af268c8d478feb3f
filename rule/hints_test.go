package rule

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// What a message about a path tells people to write is accepted.
func TestHintsForPathsAreAccepted(t *testing.T) {
	write := regexp.MustCompile(`(?:write|or) "([^"]+)"`)
	rapid.Check(t, func(t *rapid.T) {
		segments := rapid.SliceOfN(rapid.SampledFrom([]string{"", "*", ":id", ":", "{id}", "api"}), 1, 6).Draw(t, "segments")
		path := rapid.SampledFrom([]string{"", "/"}).Draw(t, "slash") + strings.Join(segments, "/")
		for _, p := range aboutPath(path) {
			for _, hint := range write.FindAllStringSubmatch(p.Message, -1) {
				if again := aboutPath(hint[1]); len(again) > 0 {
					t.Fatalf("%s\nbut then: %s", p.Message, again[0].Message)
				}
			}
		}
	})
	for wrong, right := range map[string]string{"*": "/**", "/*": "/**", "api/*": "/api/**", "/api/*": "/api/**", ":id/x": "/{id}/x", "/:id/": "/{id}/**"} {
		said := aboutPath(wrong)
		if len(said) != 1 || !strings.Contains(said[0].Message, `"`+right+`"`) || len(aboutPath(right)) > 0 {
			t.Errorf("%q: %v, want %q", wrong, said, right)
		}
	}
}

func aboutPath(path string) Problems {
	_, problems := Parse("", fmt.Appendf(nil, "rules: [{id: a, key: ip, limit: 5/1m, match: {path: %q}}]", path))
	return problems
}
