package testkit

import (
	"os"
	"testing"
)

func TestScope(t *testing.T) {
	h, err := NewScope("chaos")
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
