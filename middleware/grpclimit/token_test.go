package grpclimit

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weirhq/weir/internal/testkit/testissuer"
	"github.com/weirhq/weir/middleware/jwt"
)

// The user comes from the token, and a call without a valid one is denied if it is required.
func TestToken(t *testing.T) {
	issuer := testissuer.New(t)
	v, err := jwt.New(jwt.Options{Issuers: []jwt.Issuer{{URL: issuer.URL, Audience: []string{"api"}}}, Required: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, "rules: [{id: user, key: [user], algorithm: fixed_window, limit: 1/1h}]", Options{Token: v.Verify})
	ann, bob := issuer.Bearer(t, map[string]any{"sub": "ann"}), issuer.Bearer(t, map[string]any{"sub": "bob"})
	for _, c := range []struct {
		name   string
		tokens []string
		code   codes.Code
		detail string
	}{
		{"one", []string{ann}, codes.OK, ""},
		{"again", []string{ann}, codes.ResourceExhausted, "QUOTA_EXCEEDED weir map[rule:user]; retry 59m59.5s; quota limit:user user: The limit user is used up; try again in 3600 s."},
		{"another user", []string{bob}, codes.OK, ""},
		{"none", nil, codes.Unauthenticated, "INVALID_TOKEN weir map[]"},
		{"an invalid one", []string{"Bearer x"}, codes.Unauthenticated, "INVALID_TOKEN weir map[]"},
		{"two", []string{ann, bob}, codes.InvalidArgument, "INVALID_REQUEST weir map[]"},
	} {
		ctx := metadata.NewOutgoingContext(t.Context(), metadata.MD{"authorization": c.tokens})
		a := b.call(ctx)
		if status.Code(a.err) != c.code || a.err != nil && details(a.err) != c.detail {
			t.Errorf("%s: %v, %s", c.name, a.err, details(a.err))
		}
	}
	if n := b.served.Load(); n != 2 {
		t.Errorf("%d calls were served", n)
	}
}
