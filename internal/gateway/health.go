package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// maxHealthBody is how much of a response is read, so that its connection can be
// reused. The content is ignored.
const maxHealthBody = 64 << 10

// Run asks upstreams how they are until the context ends, which is its error. Without
// Options.Health.Path there is nothing to ask, and it only waits.
func (g *Gateway) Run(ctx context.Context) error {
	var all sync.WaitGroup
	if g.options.Health.Path != "" {
		for _, o := range g.table.origins {
			all.Go(func() { g.watch(ctx, o) })
		}
	}
	<-ctx.Done()
	all.Wait()
	return ctx.Err()
}

// watch asks one upstream again and again. What it has found out does not outlive it.
func (g *Gateway) watch(ctx context.Context, o *origin) {
	defer o.down.Store(false)
	ticks := time.NewTicker(g.options.Health.Interval)
	defer ticks.Stop()
	var p pulse
	for {
		err := g.ask(ctx, o)
		if ctx.Err() != nil {
			return
		}
		switch changed := p.feel(err, g.options.Health.Threshold); {
		case changed && err != nil:
			o.down.Store(true)
			g.options.Logger.Warn("upstream unhealthy", "upstream", o.name, "error", err.Error())
		case changed:
			o.down.Store(false)
			g.options.Logger.Info("upstream healthy again", "upstream", o.name)
		}
		if err == nil && o.until.Load() != 0 {
			o.reached(g.options.Logger)
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
	}
}

// pulse counts bad answers in a row.
type pulse int

// feel reports whether an answer makes an upstream unwell that was well, or well again.
func (p *pulse) feel(err error, threshold int) bool {
	if err == nil {
		wasDown := int(*p) >= threshold
		*p = 0
		return wasDown
	}
	*p++
	return int(*p) == threshold
}

// ask returns nil if the upstream is well.
func (g *Gateway) ask(ctx context.Context, o *origin) error {
	ctx, cancel := context.WithTimeout(ctx, g.options.Health.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.scheme+"://"+o.host+g.options.Health.Path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "weir-health")
	t := g.transport.usual
	if o.h2c {
		t = g.transport.h2c
	}
	res, err := t.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, maxHealthBody)
	if res.StatusCode < 200 || res.StatusCode > 399 {
		return fmt.Errorf("gateway: the health check returned status %d", res.StatusCode)
	}
	return nil
}
