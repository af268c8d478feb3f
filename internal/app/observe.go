package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/server/httpapi"
	"github.com/weirhq/weir/metrics"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

func (a *App) openEngine(_, background context.Context) error {
	o := metrics.Options{StoreUp: a.store.up, Delayed: a.delayed}
	if a.store.redis != nil {
		o.StoreFunctions = func() bool { return a.store.redis.ScriptsBecause() == nil }
		o.Leases = a.store.leases.Stats
	}
	if a.store.memory != nil {
		o.Keys = a.store.memory.Stats
		o.MaxKeys, _ = memoryKeys(a.options.Store)
	}
	if a.options.RESP != Off {
		o.RESP = a.respTraffic
	}
	if a.options.Gateway != nil {
		o.Adaptive = a.adaptiveLimits
	}
	if a.data != nil {
		o.Files = a.files
	}
	if a.recorder != nil {
		o.Statistics = func() metrics.Statistics {
			return metrics.Statistics{Lost: a.recorder.Health().Lost, Alerts: len(a.watcher.List().Active())}
		}
	}
	if a.options.Envoy.XDS.Server != "" {
		o.EnvoyXDS = func() metrics.EnvoyXDS { return metrics.EnvoyXDS(a.envoyXDS.State()) }
	}
	if a.jwt != nil {
		o.Tokens = a.jwt.Results
	}
	o.Counters = a.applications.counterUsage
	if a.applications.queues != nil {
		o.Queues = a.applications.lengths
		a.background.Go(func() { a.applications.watchLengths(background) })
	}
	var err error
	if a.metrics, err = metrics.New(o); err != nil {
		return err
	}
	observers := []engine.Observer{a.metrics, &denials{logger: a.options.Logger, sparse: manage.Sparse{Lines: denialsPerSecond, Every: time.Second}}}
	if a.recorder != nil {
		observers = append(observers, a.recorder)
	}
	if a.tracer != nil {
		observers = append(observers, decisionSpans{})
	}
	if a.store.redis != nil {
		observers = append(observers, &a.store.late)
	}
	a.engine, err = engine.New(engine.Options{
		Store:     a.store.Store,
		Local:     memory.New(memory.Options{}),
		Instances: func() int { return a.options.Instances },
		Observers: observers,
		Logger:    a.options.Logger,
	})
	if err == nil {
		a.later(a.engine.Close)
	}
	return err
}

// delayed is how many requests wait for their turn.
func (a *App) delayed() int {
	if limit := a.limit.Load(); limit != nil {
		return limit.Delayed()
	}
	return 0
}

// adaptiveLimits are those of the gateway's upstreams.
func (a *App) adaptiveLimits() []engine.UpstreamLimit {
	if proxy := a.proxy.Load(); proxy != nil {
		return proxy.AdaptiveLimits()
	}
	return nil
}

// protectStats is what the gateway sees and sheds, if it protects this process.
func (a *App) protectStats() *httpapi.StatsProtect {
	limit := a.limit.Load()
	if limit == nil || a.options.Gateway.Protect == (engine.Protect{}) {
		return nil
	}
	p := limit.Protection()
	s := &httpapi.StatsProtect{CPU: p.CPU, CPULimit: p.Limits.CPU, Memory: p.Memory, MemoryLimit: p.Limits.Memory, Shed: map[string]uint64{}}
	for priority, n := range p.Shed {
		s.Shed[priority.String()] = n
	}
	return s
}

// denials logs a few denials per second: under an attack, the log shows who attacks,
// but does not overflow.
type denials struct {
	logger *slog.Logger
	sparse manage.Sparse
}

const denialsPerSecond = 5

func (d *denials) Observe(req *rule.Request, v *engine.Verdict, _ time.Duration) {
	if v.Allowed {
		return
	}
	left, ok := d.sparse.Next()
	if !ok {
		return
	}
	attributes := []slog.Attr{slog.String("reason", v.Reason.String()), slog.String("method", req.Method), slog.String("path", req.Path)}
	if r := v.Speaker(); r != nil {
		// The key has no secret in clear; it is gone when the verdict is.
		attributes = append(attributes, slog.String("rule", r.Rule.ID), slog.String("key", string([]byte(r.Key))))
	}
	if v.Crowded() { // and no limit is used up
		attributes = append(attributes, slog.Bool("crowded", true))
	}
	if req.IP.IsValid() {
		attributes = append(attributes, slog.String("ip", req.IP.String()))
	}
	if left > 0 {
		attributes = append(attributes, slog.Int64("unlogged", left))
	}
	d.logger.LogAttrs(context.Background(), slog.LevelInfo, "denied", attributes...)
}
