package testredis

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/testcall"
)

// A program that is no test has servers, too.
func TestHouse(t *testing.T) {
	h := testcall.Must(testcall.NewHouse("bench"))(t)
	var s *Server
	testcall.OK(t, h.Try(func() { s = Start(h) }))
	answered(t, s, "PONG", "PING")
	h.Close()
	if _, err := s.TryDo("PING"); err == nil {
		t.Error("it answers after the house was closed")
	}
}

func TestHouseNamesWhatIsMissing(t *testing.T) {
	t.Setenv("PATH", "")
	h := testcall.Must(testcall.NewHouse("bench"))(t)
	defer h.Close()
	if err := h.Try(func() { Start(h) }); err == nil || !strings.Contains(err.Error(), "install Debian's redis-server") {
		t.Errorf("without a redis-server: %v", err)
	}
}
