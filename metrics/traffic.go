package metrics

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirhq/weir/internal/tally"
)

// trafficBounds are in seconds: from the answer of a cache to longer than clients wait.
var trafficBounds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

func (m *Metrics) makeTraffic() {
	m.httpSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "weir_http_request_seconds", Help: "Duration of HTTP requests, by route and class of status.",
		Buckets: trafficBounds,
	}, []string{"route", "code"})
	m.upstreamSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "weir_upstream_seconds", Help: "Response time of upstreams, by class of status; error means no response, canceled that the client disconnected.",
		Buckets: trafficBounds,
	}, []string{"route", "upstream", "class"})
	m.upstreamErrors = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_upstream_errors_total", Help: "Requests without a response from the upstream, by cause.",
	}, []string{"upstream", "kind"})
}

// ObserveHTTP counts a request that was answered. The route is a pattern of the mux,
// not the path; "" if no pattern matched.
func (m *Metrics) ObserveHTTP(route string, status int, took time.Duration) {
	m.httpSeconds.WithLabelValues(m.routes.Of(route), classOf(status)).Observe(took.Seconds())
}

// ObserveUpstream counts a request that was forwarded, and either answered with a
// status or ended by an error.
func (m *Metrics) ObserveUpstream(route, upstream string, status int, err error, took time.Duration) {
	upstream = m.upstreams.Of(upstream)
	class := classOf(status)
	switch {
	case errors.Is(err, context.Canceled):
		class = "canceled" // by the client, so it is not an error
	case err != nil:
		class = "error"
		m.upstreamErrors.WithLabelValues(upstream, troubleOf(err)).Inc()
	}
	m.upstreamSeconds.WithLabelValues(m.routes.Of(route), upstream, class).Observe(took.Seconds())
}

// troubleOf is why there was no answer, in a word.
func troubleOf(err error) string {
	if slow, ok := errors.AsType[net.Error](err); errors.Is(err, context.DeadlineExceeded) || ok && slow.Timeout() {
		return "timeout"
	}
	if network, ok := errors.AsType[*net.OpError](err); ok && network.Op == "dial" {
		return "connect"
	}
	return "other"
}

// classOf is the class of a status, of which there are few: a status is whatever an
// upstream writes.
func classOf(status int) string {
	if status < 100 || status > 599 {
		return tally.Other
	}
	return [...]string{"1xx", "2xx", "3xx", "4xx", "5xx"}[status/100-1]
}
