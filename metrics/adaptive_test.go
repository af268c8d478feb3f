package metrics

import (
	"testing"

	"github.com/weirhq/weir/engine"
)

// The limits of the program and those that middleware tells are shown together, and those with
// one name as one.
func TestAdaptive(t *testing.T) {
	b := newBench(t, several, Options{Adaptive: func() []engine.UpstreamLimit {
		return []engine.UpstreamLimit{{Upstream: "http://a", AdaptiveLimit: engine.AdaptiveLimit{Limit: 40, InFlight: 30, Denied: 2}}}
	}})
	want(t, b.Metrics, "weir_adaptive_limit", `{upstream="http://a"} 40`)
	state := engine.AdaptiveLimit{Limit: 5}
	for range 2 {
		b.engine.ObserveAdaptive("httplimit", func() engine.AdaptiveLimit { return state })
	}
	state.InFlight, state.Denied = 3, 7
	want(t, b.Metrics, "weir_adaptive_limit", `{upstream="http://a"} 40`, `{upstream="httplimit"} 10`)
	want(t, b.Metrics, "weir_adaptive_in_flight", `{upstream="http://a"} 30`, `{upstream="httplimit"} 6`)
	want(t, b.Metrics, "weir_adaptive_denied_total", `{upstream="http://a"} 2`, `{upstream="httplimit"} 14`)
	want(t, newBench(t, several, Options{}).Metrics, "weir_adaptive_limit")
}
