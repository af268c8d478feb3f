package httpapi

import (
	"testing"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/trust"
)

func TestWhoAmI(t *testing.T) {
	const appToken = "an-application-token-of-the-tests"
	list, err := trust.ParseTokens([]byte("alice admin " + adminToken + "\nbob read " + readerToken + "\nshop use " + appToken + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := newStand(t, Options{Service: manage.Service{Tokens: func() *trust.List { return list }}})
	for bearer, want := range map[string]WhoAnswer{
		adminToken: {"alice", "admin", "token", true}, readerToken: {"bob", "read", "token", false}, appToken: {"shop", "use", "token", false},
	} {
		var a WhoAnswer
		if s.call("GET /v1/whoami", "", as(bearer)).want(t, 200, &a); a != want {
			t.Errorf("%+v, want %+v", a, want)
		}
	}
	s.call("GET /v1/whoami", "").wantProblem(t, fault.TokenRequired)
	s.call("GET /v1/whoami", "", as("wrong-but-long-enough-for-one")).wantProblem(t, fault.InvalidToken)

	var a WhoAnswer
	if newStand(t, Options{}).call("GET /v1/whoami", "").want(t, 200, &a); a != (WhoAnswer{"", "admin", "none", true}) {
		t.Errorf("without tokens: %+v", a)
	}
}
