package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/traffic/replay"
)

func TestParseShares(t *testing.T) {
	got, err := parseShares([]string{"1%", " 0.1 %", "0.05", "0"})
	if want := []float64{0.01, 0.001, 0.05, 0}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for _, wrong := range []string{"", "x", "100%", "1", "-1%", "NaN", "Inf", "1%%"} {
		if _, err := parseShares([]string{wrong}); err == nil {
			t.Errorf("%q is a share", wrong)
		}
	}
	if _, err := parseShares(strings.Split("0,0,0,0,0,0", ",")); err == nil {
		t.Error("six shares are welcome")
	}
}

func TestProgressBar(t *testing.T) {
	var b strings.Builder
	p := &replayBar{bar: bar{w: &b}}
	p.clear()
	if b.Len() > 0 {
		t.Errorf("%q before there is anything", b.String())
	}
	p.show(replay.Progress{Requests: 1000, Denied: 7, Read: 50, Size: 100})
	first := b.String()
	if !strings.HasPrefix(first, "\r\x1b[K["+strings.Repeat("=", 15)+strings.Repeat(" ", 15)+"]  50 %  1000 requests, 7 denied, ") {
		t.Errorf("%q", first)
	}
	p.show(replay.Progress{Requests: 2000}) // too soon to be seen
	if b.String() != first {
		t.Errorf("%q", b.String())
	}
	p.last = p.last.Add(-time.Second)
	p.show(replay.Progress{Requests: 3000}) // of an unknown size
	if got := b.String()[len(first):]; !strings.HasPrefix(got, "\r\x1b[K3000 requests, 0 denied, ") {
		t.Errorf("%q", got)
	}
	p.clear()
	if !strings.HasSuffix(b.String(), "\r\x1b[K") {
		t.Errorf("%q", b.String())
	}
}
