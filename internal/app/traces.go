package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	span "go.opentelemetry.io/otel/trace"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/build"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/redis"
)

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

// probes are what machines ask for every few seconds; their spans would bury all others. Behind the
// gateway, these paths are the upstreams'.
var probes = []string{"/healthz", "/readyz", "/healthcheck", "/metrics"}

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
		otelhttp.WithFilter(func(r *http.Request) bool { return name != "api" || !slices.Contains(probes, r.URL.Path) }),
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

// child begins a span below the one of the context. If there is none, as in a call that is not
// traced or in the background, there is no child, either.
func child(ctx context.Context, name string, options ...span.SpanStartOption) (context.Context, span.Span) {
	parent := span.SpanFromContext(ctx)
	if !parent.SpanContext().IsValid() {
		return ctx, parent
	}
	return parent.TracerProvider().Tracer("github.com/weirhq/weir").Start(ctx, name, options...)
}

// endSpan ends a span. Of an error it does not tell the text, in which a client may be named.
func endSpan(s span.Span, err error) {
	switch {
	case errors.Is(err, weir.ErrUnavailable):
		s.SetStatus(codes.Error, "unavailable")
	case err != nil:
		s.SetStatus(codes.Error, "failed")
	}
	s.End()
}

// decisionSpans makes a span of each decision: to find the rules, to ask the store, and to make an
// answer of it. Like metrics, it names rules, and never a client.
type decisionSpans struct{}

// Observe implements engine.Observer.
func (decisionSpans) Observe(*rule.Request, *engine.Verdict, time.Duration) {}

// Begin implements engine.SpanObserver.
func (decisionSpans) Begin(ctx context.Context) (context.Context, func(*engine.Verdict, error)) {
	ctx, s := child(ctx, "decide")
	return ctx, func(v *engine.Verdict, err error) {
		if s.IsRecording() && err == nil {
			s.SetAttributes(attribute.Bool("weir.allowed", v.Allowed), attribute.String("weir.reason", v.Reason.String()), attribute.Bool("weir.degraded", v.Degraded != nil))
			if r := v.Speaker(); r != nil {
				s.SetAttributes(attribute.String("weir.rule", r.Rule.ID))
			}
		}
		endSpan(s, err)
	}
}

// tracedStore makes a span of each call that a request makes to Redis. A store in memory has none:
// its calls take less time than their spans.
type tracedStore struct{ *redis.Store }

func storeSpan(ctx context.Context, call string) (context.Context, span.Span) {
	return child(ctx, "store "+call, span.WithSpanKind(span.SpanKindClient), span.WithAttributes(attribute.String("db.system.name", "redis")))
}

func (t tracedStore) Take(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	ctx, s := storeSpan(ctx, "take")
	dst, err := t.Store.Take(ctx, dst, ops...)
	endSpan(s, err)
	return dst, err
}

func (t tracedStore) TakePartial(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, []error, error) {
	ctx, s := storeSpan(ctx, "take")
	dst, failed, err := t.Store.TakePartial(ctx, dst, ops...)
	endSpan(s, cmp.Or(err, errors.Join(failed...)))
	return dst, failed, err
}

func (t tracedStore) Lease(ctx context.Context, dst []weir.LeaseAnswer, ops ...weir.LeaseOp) ([]weir.LeaseAnswer, error) {
	ctx, s := storeSpan(ctx, "lease")
	dst, err := t.Store.Lease(ctx, dst, ops...)
	endSpan(s, err)
	return dst, err
}

func (t tracedStore) Peek(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	ctx, s := storeSpan(ctx, "peek")
	dst, err := t.Store.Peek(ctx, dst, ops...)
	endSpan(s, err)
	return dst, err
}

func (t tracedStore) PeekPartial(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, []error, error) {
	ctx, s := storeSpan(ctx, "peek")
	dst, failed, err := t.Store.PeekPartial(ctx, dst, ops...)
	endSpan(s, cmp.Or(err, errors.Join(failed...)))
	return dst, failed, err
}

func (t tracedStore) Reserve(ctx context.Context, dst []weir.Decision, r weir.Reservation, ops ...weir.Op) ([]weir.Decision, error) {
	ctx, s := storeSpan(ctx, "reserve")
	dst, err := t.Store.Reserve(ctx, dst, r, ops...)
	endSpan(s, err)
	return dst, err
}

func (t tracedStore) ReservePartial(ctx context.Context, dst []weir.Decision, r weir.Reservation, ops ...weir.Op) ([]weir.Decision, []error, error) {
	ctx, s := storeSpan(ctx, "reserve")
	dst, failed, err := t.Store.ReservePartial(ctx, dst, r, ops...)
	endSpan(s, cmp.Or(err, errors.Join(failed...)))
	return dst, failed, err
}

func (t tracedStore) Settle(ctx context.Context, settlement weir.Settlement) (weir.Settled, error) {
	ctx, s := storeSpan(ctx, "settle")
	settled, err := t.Store.Settle(ctx, settlement)
	endSpan(s, err)
	return settled, err
}

func (t tracedStore) Refund(ctx context.Context, ops ...weir.Op) error {
	ctx, s := storeSpan(ctx, "refund")
	err := t.Store.Refund(ctx, ops...)
	endSpan(s, err)
	return err
}
