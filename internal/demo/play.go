package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	tick    = 50 * time.Millisecond
	callers = 16
	timeout = 5 * time.Second
)

// Player sends the traffic of a script to a weir.
type Player struct {
	URL string // of weir's HTTP API

	// Speed is how fast the scenes follow each other. The rate of calls stays what it is.
	// Default 1.
	Speed float64

	// Begin is called when a scene begins.
	Begin func(at time.Duration, s Scene)

	client  *http.Client
	room    chan struct{} // a place for each call in flight
	flights sync.WaitGroup
}

// Play sends traffic until the context ends. A call that finds all callers busy is left out,
// so that a slow weir is not flooded.
func (p *Player) Play(ctx context.Context) {
	transport := &http.Transport{MaxIdleConnsPerHost: callers}
	defer transport.CloseIdleConnections()
	p.client = &http.Client{Transport: transport, Timeout: timeout}
	p.room = make(chan struct{}, callers)
	defer p.flights.Wait()
	if p.Speed <= 0 {
		p.Speed = 1
	}
	script, start, last, at := NewScript(1), time.Now(), time.Duration(0), time.Duration(0)
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		now := time.Since(start)
		before := at
		at = time.Duration(float64(now) * p.Speed)
		p.announce(before, at)
		// After a pause, as of a laptop that slept, nothing is made up for.
		for _, c := range script.Next(at, min(now-last, 4*tick)) {
			p.send(ctx, c)
		}
		last = now
	}
}

// announce tells which scenes begin.
func (p *Player) announce(before, at time.Duration) {
	if p.Begin == nil {
		return
	}
	for _, s := range Scenes {
		if begin := at - (at-s.From)%Cycle; at >= s.From && before < begin {
			p.Begin(begin, s)
		}
	}
}

// send makes a call, unless all callers are busy.
func (p *Player) send(ctx context.Context, c Call) {
	select {
	case p.room <- struct{}{}:
	default:
		return
	}
	p.flights.Go(func() {
		hold := p.ask(ctx, c)
		<-p.room
		if hold == "" {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(c.Takes):
		}
		_ = p.post(ctx, "/v1/settle", fmt.Appendf(nil, `{"hold": %q, "used": {"tokens": %d}}`, hold, c.Used), nil)
	})
}

// ask asks weir about a call, and returns the hold, if there is one.
func (p *Player) ask(ctx context.Context, c Call) (hold string) {
	body, err := json.Marshal(c)
	if err != nil {
		return ""
	}
	if c.Cost == nil {
		_ = p.post(ctx, "/v1/check", body, nil) // weir shows what came of it
		return ""
	}
	var answer struct{ Hold string }
	if p.post(ctx, "/v1/reserve", body, &answer) != nil {
		return ""
	}
	return answer.Hold
}

func (p *Player) post(ctx context.Context, path string, body []byte, answer any) error {
	req, err := http.NewRequestWithContext(ctx, "POST", p.URL+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil || answer == nil {
		return err
	}
	return json.Unmarshal(text, answer)
}
