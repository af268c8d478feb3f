package app

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/weirhq/weir/internal/build"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	span "go.opentelemetry.io/otel/trace"
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
