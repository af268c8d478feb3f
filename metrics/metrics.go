// Package metrics counts the verdicts of an engine, for Prometheus.
//
//	m, err := metrics.New(metrics.Options{})
//	e, err := engine.New(engine.Options{Store: store, Observers: []engine.Observer{m}})
//	e.Install(table, 1)
//	mux.Handle("GET /metrics", m.Handler())
//
// Counting a verdict takes tens of nanoseconds and allocates nothing: the counters of a
// rule are found by its pointer, and labels are formatted only at a scrape.
//
// No label contains anything that a client sent. Rules are labelled by their ids, and
// the series of a removed rule are removed too. Routes and upstreams come from the
// program, and their number is bounded as well. docs/reference/metrics.md lists all
// metrics.
package metrics

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/build"
	"github.com/weirhq/weir/internal/tally"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/lease"
	"github.com/weirhq/weir/store/memory"
)

// Defaults of Options.
const (
	DefaultMaxRules  = 1000
	DefaultMaxRoutes = 200
)

// maxScrapes is how many scrapes are answered at once: a few Prometheus servers, and
// somebody who looks.
const maxScrapes = 8

// Options configures metrics. The zero value is ready to use. The functions are called
// at every scrape and must answer from memory.
type Options struct {
	// Version is the version in weir_build_info. Default the version of the main
	// module.
	Version string

	// MaxRules is how many rules have their own series: the first ones by id, then
	// those of InstallDemands. The others are counted together. Default
	// DefaultMaxRules.
	MaxRules int

	// MaxRoutes is how many routes, and how many upstreams, have their own series: the
	// first ones that appear. Default DefaultMaxRoutes.
	MaxRoutes int

	// StoreUp reports whether the store is available. Default always true, as for a
	// store in memory.
	StoreUp func() bool

	// StoreFunctions reports whether a store in Redis uses functions, and not scripts. Default
	// none: there is no such series.
	StoreFunctions func() bool

	// Leases returns the numbers of a store with leases. Default none: there are no series about leases.
	Leases func() lease.Stats

	// Keys returns the numbers of the store in memory. Default none: there are no
	// series about keys.
	Keys func() memory.Stats

	// MaxKeys is the maximum number of keys of that store. Default
	// memory.DefaultMaxKeys.
	MaxKeys int

	// Delayed returns how many requests are delayed now. Default none.
	Delayed func() int

	// Queues returns the state of the queues. Default none: there are no series about
	// queues.
	Queues func() []Queue

	// Counters returns how full the counters in memory are. Default none: there are no series
	// about counters.
	Counters func() Counters

	// RESP returns what Redis clients have done. Default none: there are no series about
	// them.
	RESP func() RESP

	// Tokens returns how many requests had which kind of token, by its name, as Results of package
	// middleware/jwt does. Default none: there are no series about tokens.
	Tokens func() map[string]int64

	// Adaptive returns the state of adaptive limits, besides those of middleware, which the
	// engine tells. Default none.
	Adaptive func() []engine.UpstreamLimit

	// Statistics returns the state of the statistics. Default none.
	Statistics func() Statistics

	// Files returns the state of the files that keep data across a restart. Default
	// none: there are no series about files.
	Files func() []File

	// EnvoyXDS returns the state of the connection to an xDS control plane. Default none.
	EnvoyXDS func() EnvoyXDS

	// Clock returns the time, for when rules were loaded. Default time.Now.
	Clock func() time.Time
}

// Queue is the state of a queue.
type Queue struct {
	Name                         string
	Ready, Delayed, Leased, Dead int64
	Age                          time.Duration // age of the oldest ready item
}

// Counters is how full the counters in memory are.
type Counters struct {
	Entries, Capacity int
	Rejected          int64 // calls
}

// RESP is what Redis clients have done.
type RESP struct {
	Connections int    // now
	Rejected    uint64 // connections beyond the maximum
	Commands    []Commands
}

// Commands is how often a command was answered.
type Commands struct {
	Command string
	Failed  bool // with an error; a denial is none
	Total   uint64
}

// File is the state of a file that keeps data across a restart.
type File struct {
	Name     string
	Failures int64     // number of failed saves
	Saved    time.Time // time of the last save; zero if there was none
	Unusable bool      // the file could not be read at the start, and was renamed
}

// EnvoyXDS is the state of the connection to an xDS control plane.
type EnvoyXDS struct {
	Connected          bool
	Version            string // of the configuration in force; "" if it did not come by this connection
	Accepted, Rejected uint64 // responses
}

// Statistics is the state of weir's own statistics.
type Statistics struct {
	Lost   int64 // requests that were lost
	Alerts int   // alerts that fire
}

// Metrics counts verdicts, requests and more. It is safe for concurrent use.
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

	reserved atomic.Uint64 // holds
	holds    [engine.HoldKinds]atomic.Uint64

	installing sync.Mutex // guards what was installed
	table      []*rule.Entry
	demanded   []*rule.Entry
	version    int64
	since      time.Time

	protections registered[func() engine.Protection]

	reloadFailed atomic.Uint64
	rulesHash    atomic.Pointer[uint16] // nil as long as no document was told
	rulesStale   atomic.Bool            // there are newer rules that cannot be used
	pricesStale  atomic.Bool            // there is a newer price list that cannot be used
	clientsStale atomic.Bool            // there is a newer directory of clients that cannot be used
	envoyStale   atomic.Bool            // there is a newer configuration for Envoy that cannot be used

	adaptive registered[adaptiveLimit]
	reserves registered[func() []engine.Reserved]

	routes, upstreams tally.Names
	httpSeconds       *prometheus.HistogramVec
	upstreamSeconds   *prometheus.HistogramVec
	upstreamErrors    *prometheus.CounterVec
}

// New returns metrics with their own registry.
func New(o Options) (*Metrics, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	m := &Metrics{options: o, registry: prometheus.NewRegistry()}
	m.install()
	m.routes.Max, m.upstreams.Max = o.MaxRoutes, o.MaxRoutes
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
			return o, fmt.Errorf("metrics: %s: %d is negative; use 0 for the default of %d", bound.name, *bound.value, bound.initial)
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

// Handler serves scrapes, compressed if the scraper accepts it, and only a few at a
// time.
func (m *Metrics) Handler() http.Handler { return m.handler }

// Registry returns the registry, for metrics of your program. Names that begin with
// weir_ are reserved.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

func buildInfo(version string) prometheus.Collector {
	b := build.Read()
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "weir_build_info", Help: "Always 1; the labels describe the build.",
		ConstLabels: prometheus.Labels{
			"version": strings.ToValidUTF8(cmp.Or(version, b.Version), "?"), "revision": cmp.Or(b.Commit, "unknown"), "goversion": b.Go,
		},
	})
	info.Set(1)
	return info
}
