package expression_test

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/rule/expression"
)

func TestClaims(t *testing.T) {
	claims := `{"sub": "ann", "org": {"id": 42}, "plan": null, "roles": ["a", "b"], "paid": true, "https://example.com/tier": "gold", "f": 1.5, "e": ""}`
	for _, c := range []struct{ source, want, wrong string }{
		{source: `jwt.claims.sub`, want: "ann"},
		{source: `jwt.claims.org.id`, want: "42"},
		{source: `jwt.claims.paid`, want: "true"},
		{source: `jwt.claims["https://example.com/tier"]`, want: "gold"},
		{source: `"x-" + jwt.claims.sub`, want: "x-ann"},
		{source: `"a" in jwt.claims.roles ? "staff" : ""`, want: "staff"},
		{source: `has(jwt.claims.azp) ? jwt.claims.azp : jwt.claims.sub`, want: "ann"},
		{source: `jwt.claims.plan`},
		{source: `jwt.claims.missing`},
		{source: `jwt.claims.missing.too`},
		{source: `jwt.claims.e`},
		{source: `jwt.claims.f`, wrong: "neither a text nor a whole number"},
		{source: `jwt.claims.roles`, wrong: "neither a text nor a whole number"},
		{source: `jwt.claims.roles + 1`, wrong: "does not fit the types"},
	} {
		e, err := expression.CompileClaims(c.source)
		if err != nil {
			t.Errorf("%s: %v", c.source, err)
			continue
		}
		got, err := e.Text([]byte(claims))
		if got != c.want || (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s is %q, %v", c.source, got, err)
		}
	}
	sub, _ := expression.CompileClaims(`jwt.claims.sub`)
	for _, bad := range []string{`{"sub": "a", "sub": "b"}`, `{"sub": "a", "Sub": "b"}`, `{`, ``, "{\"sub\": \"\xff\"}"} {
		if got, err := sub.Text([]byte(bad)); err == nil {
			t.Errorf("%s gives %q", bad, got)
		}
	}
}

func TestInvalidClaims(t *testing.T) {
	for source, want := range map[string]string{
		`request.user`:                         "request is not known here; read fields of jwt.claims, as in jwt.claims.sub",
		`jwt.sub`:                              "jwt is not known here",
		`jwt.claims.sub == "a" ? [1] : [2]`:    "the result is of type list(int); write an expression that is a text or a whole number",
		`jwt.claims.sub.matches(jwt.claims.p)`: "the pattern of matches is computed",
		strings.Repeat("x", 1025):              "exceeds the maximum of 1024 bytes",
	} {
		if _, err := expression.CompileClaims(source); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v", source, err)
		}
	}
}
