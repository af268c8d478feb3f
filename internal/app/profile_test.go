package app

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/testkit"
)

// Profiles are for administrators; a server that has none does not start with them.
func TestProfilesNeedAdmin(t *testing.T) {
	const token = "a-token-of-the-tests-0123456789"
	file := filepath.Join(t.TempDir(), "tokens")
	testkit.OK(t, os.WriteFile(file, []byte("shop check "+token+"\n"), 0o600))
	for name, o := range map[string]Options{"no tokens": {}, "no admin": {TokenFile: file}} {
		o.Profiles = true
		o, _ = prepared(t, o, perUser)
		if err := testkit.Must(New(o))(t).Start(t.Context()); err == nil || !strings.Contains(err.Error(), "--pprof requires a token with the right admin") {
			t.Errorf("%s: %v", name, err)
		}
	}
	o, _ := prepared(t, Options{Token: token, Profiles: true}, perUser)
	a := started(t, o)
	if status, body := ask(t, nil, "GET", urlOf(a)+"/debug/pprof/goroutine", "", "Authorization", "Bearer "+token); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
	if status, body := ask(t, nil, "GET", urlOf(a)+"/debug/pprof/goroutine", ""); status != http.StatusUnauthorized {
		t.Errorf("%d %s", status, body)
	}
}
