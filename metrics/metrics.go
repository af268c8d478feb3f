// Package metrics counts what an engine decides, for Prometheus.
//
//	m, err := metrics.New(metrics.Options{})
//	e, err := engine.New(engine.Options{Store: store, Observers: []engine.Observer{m}})
//	m.Install(table, 1) // first, so that every verdict finds its rule
//	e.Install(table, 1)
//	mux.Handle("GET /metrics", m.Handler())
//
// A verdict costs some tens of nanoseconds and no memory: a rule's counters are looked
// up by its pointer, and labels are text only when somebody reads them.
//
// No label has anything that a client sent. Rules are labelled by their ids, and a
// rule that is gone takes its series along; routes and upstreams come from the
// program, and their number is bounded all the same. docs/reference/metrics.md has the list.
package metrics

import (
	"cmp"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

// What Options stand for when they say nothing.
const (
	DefaultMaxRules  = 1000
	DefaultMaxRoutes = 200
)

// other is the label of everything beyond a bound. No id of a rule has parentheses.
const other = "(other)"

// maxScrapes is how many scrapes are answered at once: a few Prometheus servers, and
// somebody who looks.
const maxScrapes = 8

// Options of metrics. The zero value is ready to use. The functions are called at
// every scrape and must answer from memory.
type Options struct {
	// Version is what weir_build_info says. Default the version of the main module.
	Version string

	// MaxRules is how many rules have series of their own: the first ones by id, and
	// then those of InstallDemands. The others are counted together. Default
	// DefaultMaxRules.
	MaxRules int

	// MaxRoutes is how many routes, and how many upstreams, have series of their own:
	// the first ones to be seen. Default DefaultMaxRoutes.
	MaxRoutes int

	// StoreUp tells whether the store can be asked. Default always: one in memory
	// cannot be lost.
	StoreUp func() bool

	// Keys tells what the store in memory knows about itself. Default nothing:
	// there are no series about keys.
	Keys func() memory.Stats

	// MaxKeys is that store's bound. Default memory.DefaultMaxKeys.
	MaxKeys int

	// Delayed tells how many requests wait for their turn. Default none.
	Delayed func() int

	// Queues tells what queues hold. Default nothing: there are no series about them.
	Queues func() []Queue

	// Statistics tells how the statistics fare. Default nothing.
	Statistics func() Statistics

	// Files tells how the files fare that survive a restart. Default nothing: there are
	// no series about them.
	Files func() []File

	// Clock tells the time, for when rules were loaded. Default time.Now.
	Clock func() time.Time
}

// Queue is what a queue holds, and for how long.
type Queue struct {
	Name                         string
	Ready, Delayed, Leased, Dead int64
	Age                          time.Duration // of the oldest that is ready
}

// File is how a file fares that survives a restart.
type File struct {
	Name     string
	Failures int64     // saves that failed
	Saved    time.Time // zero if it was not, yet
	Unusable bool      // it could not be used at the start, and was moved aside
}

// Statistics are how weir's own statistics fare.
type Statistics struct {
	Lost   int64 // requests that are missing in them
	Alerts int   // that fire
}

// Metrics counts verdicts and more. It is safe for concurrent use.
type Metrics struct {
	options  Options
	registry *prometheus.Registry
	handler  http.Handler

	// The hot path. Nothing in it is ever locked.
	stripes [stripes]stripe
	rules   atomic.Pointer[inForce]
	others  ruleCounters // of the rules beyond MaxRules

	degraded [policies]atomic.Uint64
	failures [kinds]atomic.Uint64

	installing sync.Mutex // guards what was installed
	table      []*rule.Entry
	demanded   []*rule.Entry
	version    int64
	since      time.Time

	reloadFailed atomic.Uint64
	rulesStale   atomic.Bool // there are newer rules that cannot be used
	envoyStale   atomic.Bool // there is a newer configuration for Envoy that cannot be used

	routes, upstreams bounded
	httpSeconds       *prometheus.HistogramVec
	upstreamSeconds   *prometheus.HistogramVec
	upstreamErrors    *prometheus.CounterVec
}

// New returns metrics on a registry of their own.
func New(o Options) (*Metrics, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	m := &Metrics{options: o, registry: prometheus.NewRegistry()}
	m.rules.Store(&inForce{})
	m.routes.max, m.upstreams.max = o.MaxRoutes, o.MaxRoutes
	m.makeTraffic()
	for _, c := range []prometheus.Collector{
		(*collector)(m), m.httpSeconds, m.upstreamSeconds, m.upstreamErrors, buildInfo(o.Version),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := m.registry.Register(c); err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
	}
	m.handler = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		Registry:            m.registry,
		ErrorHandling:       promhttp.ContinueOnError, // rather most of it than nothing
		OfferedCompressions: []promhttp.Compression{promhttp.Identity, promhttp.Gzip},
		MaxRequestsInFlight: maxScrapes,
	})
	return m, nil
}

func (o Options) withDefaults() (Options, error) {
	for _, bound := range []struct {
		name    string
		value   *int
		initial int
	}{{"MaxRules", &o.MaxRules, DefaultMaxRules}, {"MaxRoutes", &o.MaxRoutes, DefaultMaxRoutes}, {"MaxKeys", &o.MaxKeys, memory.DefaultMaxKeys}} {
		if *bound.value < 0 {
			return o, fmt.Errorf("metrics: %s: %d is no bound; leave it 0 for %d", bound.name, *bound.value, bound.initial)
		}
		*bound.value = cmp.Or(*bound.value, bound.initial)
	}
	if o.StoreUp == nil {
		o.StoreUp = func() bool { return true }
	}
	if o.Delayed == nil {
		o.Delayed = func() int { return 0 }
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return o, nil
}

// Handler answers scrapes, compressed if the scraper likes, and only a few at once.
func (m *Metrics) Handler() http.Handler { return m.handler }

// Registry is where a program may register what it counts itself. Names that begin
// with weir_ are taken.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

func buildInfo(version string) prometheus.Collector {
	revision := "unknown"
	if build, ok := debug.ReadBuildInfo(); ok {
		version = cmp.Or(version, build.Main.Version)
		for _, s := range build.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "weir_build_info", Help: "Always 1; the labels say what runs.",
		ConstLabels: prometheus.Labels{
			"version": strings.ToValidUTF8(cmp.Or(version, "unknown"), "?"), "revision": revision, "goversion": runtime.Version(),
		},
	})
	info.Set(1)
	return info
}
