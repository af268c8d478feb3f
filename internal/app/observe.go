package app

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	span "go.opentelemetry.io/otel/trace"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/build"
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
	if a.store.redis != nil {
		observers = append(observers, &a.store.late)
	}
	a.engine, err = engine.New(engine.Options{
		Store:     a.store.Store,
		Local:     memory.New(memory.Options{}),
		Instances: func() int { return a.options.Instances },
		Observers: observers,
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
	if req.IP.IsValid() {
		attributes = append(attributes, slog.String("ip", req.IP.String()))
	}
	if left > 0 {
		attributes = append(attributes, slog.Int64("unlogged", left))
	}
	d.logger.LogAttrs(context.Background(), slog.LevelInfo, "denied", attributes...)
}

// openTraces sends spans to a collector, if there is one.
func (a *App) openTraces(ctx, _ context.Context) error {
	endpoint := cmp.Or(a.options.Traces, os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
	if endpoint == "" {
		return nil
	}
	var options []otlptracehttp.Option // what is not said here, the exporter reads from OTEL_…
	if a.options.Traces != "" {
		u, err := url.Parse(a.options.Traces)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("--traces: %q is not the URL of a collector; write for example http://127.0.0.1:4318", a.options.Traces)
		}
		if u.Path == "" || u.Path == "/" {
			u.Path = "/v1/traces"
		}
		options = append(options, otlptracehttp.WithEndpointURL(u.String()))
	}
	exporter, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return fmt.Errorf("--traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithFromEnv(), resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", cmp.Or(os.Getenv("OTEL_SERVICE_NAME"), "weir")), attribute.String("service.version", build.Read().Version)))
	if err != nil {
		return fmt.Errorf("--traces: %w", err)
	}
	a.tracer = trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(about))
	a.later(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := a.tracer.Shutdown(ctx); err != nil {
			a.options.Logger.Warn("could not send the last traces", "error", err)
		}
	})
	return nil
}

// traced makes a span of every request, if traces are on. The header traceparent of the
// caller names the trace; in the forwarded request, the header names the new span.
func (a *App) traced(name string, next http.Handler) http.Handler {
	if a.tracer == nil {
		return next
	}
	context := propagation.TraceContext{}
	passOn := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		context.Inject(r.Context(), propagation.HeaderCarrier(r.Header))
		next.ServeHTTP(w, r)
	})
	return otelhttp.NewHandler(passOn, name,
		otelhttp.WithTracerProvider(a.tracer), otelhttp.WithPropagators(context),
		otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return name + " " + methodName(r.Method) }))
}

// observeHTTP counts an answer, and gives its span the name of the route.
func (a *App) observeHTTP(ctx context.Context, route string, status int, took time.Duration) {
	a.metrics.ObserveHTTP(route, status, took)
	if a.tracer != nil {
		span.SpanFromContext(ctx).SetName(route)
	}
}

// methodName keeps what a client makes up out of the names of spans.
func methodName(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions:
		return method
	}
	return "other"
}
