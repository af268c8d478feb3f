package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/weirhq/weir/internal/server/httpapi"
)

// What a terminal is told. It shows another screen meanwhile, so that what was there
// before is there afterwards.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l" // without a cursor, and lines do not wrap
	leaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	toTheTop    = "\x1b[H"
	restOfLine  = "\x1b[K"
	restBelow   = "\x1b[J"
)

// watch draws again and again until somebody wants to leave.
func watch(ctx context.Context, server *client, v *view, k look, interval time.Duration, screen *terminal, keys *terminal) (err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	if keys != nil {
		restore, err := keys.listen()
		if err != nil {
			return fmt.Errorf("the keyboard cannot be read; use --once instead: %w", err)
		}
		defer restore()
		all.Go(func() { keys.wait(ctx, cancel) })
	}
	changes := make(chan func(*view))
	tell := func(change func(*view)) {
		select {
		case changes <- change:
		case <-ctx.Done():
		}
	}
	all.Go(func() { following(server, tell).run(ctx) })
	all.Go(func() { poll(ctx, server, max(interval, pollEvery), tell) })

	defer func() {
		if _, last := io.WriteString(screen, leaveScreen); err == nil {
			err = last
		}
	}()
	if _, err := io.WriteString(screen, enterScreen); err != nil {
		return err
	}
	return redraw(ctx, v, k, interval, screen, changes)
}

// redraw draws until the context ends.
func redraw(ctx context.Context, v *view, k look, interval time.Duration, screen *terminal, changes <-chan func(*view)) error {
	k.live = true
	resized, ignore := resizes()
	defer ignore()
	ticks := time.Tick(interval)
	for {
		k.width, k.height = screen.size()
		if _, err := screen.WriteString(frameOf(v.lines(k, time.Now()))); err != nil {
			return err
		}
		for drawn := false; !drawn; {
			select {
			case <-ctx.Done():
				return nil
			case change := <-changes:
				before := v.trouble + v.stale
				change(v)
				drawn = v.trouble+v.stale != before // bad news, and that it is over, do not wait
			case <-resized:
				drawn = true
			case <-ticks:
				drawn = true
			}
		}
	}
}

// frameOf is what draws lines over what was there, without a moment in which there is
// nothing.
func frameOf(lines []string) string {
	return toTheTop + strings.Join(lines, restOfLine+"\r\n") + restOfLine + restBelow
}

// following follows the events of a server.
func following(server *client, tell func(func(*view))) *follower {
	return &follower{
		server: server,
		event: func(e *httpapi.SummaryAnswer) {
			tell(func(v *view) {
				v.second, v.follows, v.trouble = *e, true, ""
				v.past.follow(e)
			})
		},
		lost: func(err error, pause time.Duration) {
			next := time.Now().Add(pause).Format(time.TimeOnly)
			tell(func(v *view) { v.trouble = fmt.Sprintf("no update, next try at %s: %v", next, err) })
		},
	}
}

// poll asks from time to time for what is not sent by itself.
func poll(ctx context.Context, server *client, every time.Duration, tell func(func(*view))) {
	ticks := time.Tick(every)
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
		n, err := ask(ctx, server)
		if err != nil {
			of := last.Format(time.TimeOnly)
			tell(func(v *view) { v.stale = fmt.Sprintf("clients and alerts are as of %s: %v", of, err) })
			continue
		}
		last = time.Now()
		tell(func(v *view) { v.news, v.stale = n, "" })
	}
}

// Sizes that no terminal has, and that would take memory to draw.
const maxColumns, maxRows = 500, 300

// sizeFromEnvironment is for outputs that do not know how large they are.
func sizeFromEnvironment() (width, height int) {
	return fromEnvironment("COLUMNS", 80, maxColumns), fromEnvironment("LINES", 24, maxRows)
}

func fromEnvironment(variable string, otherwise, most int) int {
	n, err := strconv.Atoi(os.Getenv(variable))
	if err != nil || n < 1 {
		return otherwise
	}
	return min(n, most)
}

// wantsToLeave is whether keys say so: q, Q, Ctrl-C or Ctrl-D.
func wantsToLeave(keys []byte) bool { return bytes.ContainsAny(keys, "qQ\x03\x04") }
