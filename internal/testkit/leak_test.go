package testkit

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) { os.Exit(Run(m)) }

// wait is what the goroutine of this test does.
func wait(until chan struct{}) { <-until }

// A goroutine that ends late is none that was left behind, and one that stays is named.
func TestFind(t *testing.T) {
	until := make(chan struct{})
	go wait(until)
	if err := find(0); err == nil || !strings.Contains(err.Error(), "testkit.wait") {
		t.Errorf("of one that stays: %v", err)
	}
	time.AfterFunc(time.Second, func() { close(until) }) // longer than goleak waits by itself
	if err := find(patience); err != nil {
		t.Errorf("of one that ends: %v", err)
	}
}
