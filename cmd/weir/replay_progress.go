package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/replay"
)

// progressBar is a line that is written again and again.
type progressBar struct {
	w     io.Writer
	begun time.Time
	last  time.Time
	shown bool
}

func (b *progressBar) show(p replay.Progress) {
	now := time.Now()
	if b.begun.IsZero() {
		b.begun = now
	}
	if now.Sub(b.last) < 100*time.Millisecond {
		return
	}
	b.last, b.shown = now, true
	rate := float64(p.Requests) / max(0.001, now.Sub(b.begun).Seconds())
	fmt.Fprintf(b.w, "\r\x1b[K%s%d requests, %d refused, %.0f a second", filled(p), p.Requests, p.Refused, rate)
}

// filled draws how much was read, if it is known of how much.
func filled(p replay.Progress) string {
	const columns = 30
	if p.Size <= 0 {
		return ""
	}
	done := min(1, float64(p.Read)/float64(p.Size))
	full := int(done * columns)
	return fmt.Sprintf("[%s%s] %3.0f %%  ", strings.Repeat("=", full), strings.Repeat(" ", columns-full), done*100)
}

func (b *progressBar) clear() {
	if b.shown {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
}
