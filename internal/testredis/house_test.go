package testredis

import (
	"os"
	"strings"
	"testing"
)

func TestHouse(t *testing.T) {
	h, err := NewHouse("chaos")
	if err != nil {
		t.Fatal(err)
	}
	order := ""
	h.Cleanup(func() { order += "b" })
	h.Cleanup(func() { order += "a" })
	if err := h.Try(func() { h.Fatalf("no %s", "luck") }); err == nil || err.Error() != "chaos: no luck" {
		t.Errorf("the failure is %v", err)
	}
	if err := h.Try(func() { h.TempDir() }); err != nil {
		t.Error(err)
	}
	h.Close()
	if _, err := os.Stat(h.dir); order != "ab" || !os.IsNotExist(err) {
		t.Errorf("%q was undone; %v", order, err)
	}
}

func TestAlone(t *testing.T) {
	s, stop, err := Alone("bench")
	if err != nil {
		t.Fatal(err)
	}
	answered(t, s, "PONG", "PING")
	stop()
	if _, err := s.TryDo("PING"); err == nil {
		t.Error("it answers after it was stopped")
	}
}

func TestAloneNamesWhatIsMissing(t *testing.T) {
	t.Setenv("PATH", "")
	if _, _, err := Alone("bench"); err == nil || !strings.Contains(err.Error(), "install Debian's redis-server") {
		t.Errorf("without a redis-server: %v", err)
	}
}
