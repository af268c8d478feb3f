package redisserver

import (
	"strings"
	"testing"
)

func TestStartAndStop(t *testing.T) {
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	if !s.answers() {
		t.Error("it does not answer")
	}
	s.Stop()
	if s.answers() {
		t.Error("it answers after it was stopped")
	}
}

func TestStartNamesWhatIsMissing(t *testing.T) {
	t.Setenv("PATH", "")
	if _, err := Start(); err == nil || !strings.Contains(err.Error(), "install Debian's redis-server") {
		t.Errorf("without a redis-server: %v", err)
	}
}
