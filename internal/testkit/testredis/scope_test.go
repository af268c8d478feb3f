package testredis

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/testkit"
)

// A program that is not a test can start servers, too.
func TestScope(t *testing.T) {
	h := testkit.Must(testkit.NewScope("bench"))(t)
	var s *Server
	testkit.OK(t, h.Try(func() { s = Start(h) }))
	answered(t, s, "PONG", "PING")
	h.Close()
	if _, err := s.TryDo("PING"); err == nil {
		t.Error("it answers after the scope was closed")
	}
}

func TestScopeNamesMissingProgram(t *testing.T) {
	t.Setenv("PATH", "")
	h := testkit.Must(testkit.NewScope("bench"))(t)
	defer h.Close()
	if err := h.Try(func() { Start(h) }); err == nil || !strings.Contains(err.Error(), "install Debian's redis-server") {
		t.Errorf("without a redis-server: %v", err)
	}
}
