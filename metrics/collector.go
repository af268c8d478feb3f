package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/tally"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/lease"
)

// collector makes series of what was counted when somebody asks, so that counting
// needs no labels and a rule that is gone leaves nothing to clean up.
type collector Metrics

// described are all series that a collector may have. Those of parts that a program does not
// have are only reserved.
var described []*prometheus.Desc

func desc(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc("weir_"+name, help, labels, nil)
	described = append(described, d)
	return d
}

var (
	requestsDesc   = desc("requests_total", "Requests that were decided, by outcome.", "outcome")
	prioritiesDesc = desc("requests_by_priority_total", "Requests that were decided, by priority and outcome.", "priority", "outcome")
	decisionsDesc  = desc("decisions_total", "Decisions of each rule, by outcome.", "rule", "outcome")
	levelsDesc     = desc("level_denials_total", "Decisions of each rule with levels that a level denied, or would deny.", "rule", "level")
	secondsDesc    = desc("decision_seconds", "Duration of decisions, including the store.")
	degradedDesc   = desc("degraded_total", "Requests that were decided without the store, by on_failure policy.", "policy")
	failuresDesc   = desc("store_errors_total", "Requests for which the store failed, by cause.", "kind")
	upDesc         = desc("store_up", "Whether the store is available.")
	functionsDesc  = desc("store_functions", "Whether Redis runs the store's functions, not scripts.")

	leaseChecksDesc   = desc("lease_checks_total", "Requests under limits with a lease, by how they were decided.", "how")
	leaseMessagesDesc = desc("lease_messages_total", "Messages to the store about leases.")
	leaseKeysDesc     = desc("lease_keys", "Keys of which this process leases units.")
	leaseRulesDesc    = desc("lease_decisions_total", "Decisions of each rule with a lease, by how they were made.", "rule", "how")
	leaseUnitsDesc    = desc("lease_units", "Units on lease that this process can spend, of each rule.", "rule")
	leaseReturnedDesc = desc("lease_units_returned_total", "Units on lease that were returned unspent, of each rule.", "rule")
	leaseLostDesc     = desc("lease_units_lost_total", "Units on lease that the store charged although they were not spent, of each rule.", "rule")

	keysDesc    = desc("keys", "Keys in the memory store.")
	maxKeysDesc = desc("keys_max", "Maximum number of keys in the memory store.")
	expiredDesc = desc("keys_expired_total", "Keys that were removed because their usage was back to zero.")
	evictedDesc = desc("keys_evicted_total", "Keys that were removed to make room, although they still had usage.")

	holdEventsDesc   = desc("hold_events_total", "What happened to holds.", "event")
	holdsDesc        = desc("holds_total", "Holds that each rule had a part in, by event.", "rule", "event")
	holdOverrunsDesc = desc("hold_overruns_total", "Holds of each rule that used more than was reserved.", "rule")
	holdUnitsDesc    = desc("hold_units_total", "Units of each rule's holds and of charges without a hold.", "rule", "kind")

	inFlightDesc        = desc("in_flight", "Requests in flight of each rule that limits how many are, as far as this process knows of their end.", "rule")
	inFlightSecondsDesc = desc("in_flight_seconds", "How long requests were in flight, of each rule that limits how many are.", "rule")

	warningsDesc    = desc("warnings_total", "Clients that have reached a threshold of each rule, once per client, period and threshold.", "rule")
	expressionsDesc = desc("expression_failures_total", "Evaluations of each rule's expressions that failed.", "rule")

	rulesDesc    = desc("rules", "Rules in force, by mode.", "mode")
	versionDesc  = desc("rules_version", "The version of the rules in force.")
	hashDesc     = desc("rules_hash", "A number from 0 to 65535 that is made from the document of the rules in force.")
	sinceDesc    = desc("rules_loaded_timestamp_seconds", "Time at which the rules in force were loaded.")
	reloadedDesc = desc("rules_last_reload_successful", "Whether the latest rules, clients and Envoy configuration are in force.")
	failedDesc   = desc("rules_reload_failures_total", "Rules, clients and Envoy configurations that could not be loaded.")
	delayedDesc  = desc("delayed_requests", "Requests that are delayed now.")

	unitDescs = [...]*prometheus.Desc{ // reserved, exceed, settled
		desc("reserved_units", "Units that are reserved for requests to language models that are open now, by the model that they name.", "rule", "model"),
		desc("reserved_exceed_units", "Units that requests to language models that are open now may use beyond what is reserved.", "rule", "model"),
		desc("settled_units_total", "Units of requests to language models that were settled: used, and refunded of what was reserved.", "rule", "model", "kind"),
	}
	moneyDescs = [...]*prometheus.Desc{ // the same, of rules that count money
		desc("reserved_money", "What is reserved for requests to language models that are open now under each rule that counts money.", "rule", "model", "currency"),
		desc("reserved_exceed_money", "What requests to language models that are open now may cost beyond what is reserved.", "rule", "model", "currency"),
		desc("settled_money_total", "Money of requests to language models that were settled: used, and refunded of what was reserved.", "rule", "model", "currency", "kind"),
	}
	spentDesc = desc("spent_money_total", "What requests have cost under each rule that counts money, by model, and what of it was given back.", "rule", "model", "currency", "kind")

	queueDesc    = desc("queue_items", "Items in a queue, by state.", "queue", "state")
	queueAgeDesc = desc("queue_oldest_seconds", "Waiting time of the oldest item that is ready.", "queue")

	respConnectionsDesc = desc("resp_connections", "Redis clients that are connected now.")
	respRejectedDesc    = desc("resp_connections_rejected_total", "Connections of Redis clients that were rejected, because there were too many.")
	respCommandsDesc    = desc("resp_commands_total", "Commands of Redis clients, by command and result.", "command", "result")

	tokensDesc = desc("tokens_total", "Requests by what their access token was.", "result")

	adaptiveDesc         = desc("adaptive_limit", "Maximum number of requests in flight to an upstream, as the adaptive limit is now.", "upstream")
	adaptiveInFlightDesc = desc("adaptive_in_flight", "Requests in flight to an upstream with an adaptive limit.", "upstream")
	adaptiveDeniedDesc   = desc("adaptive_denied_total", "Requests that the adaptive limit of an upstream denied.", "upstream")

	counterEntriesDesc  = desc("counter_entries", "Entries of counters in memory; some may have expired.")
	counterCapacityDesc = desc("counter_capacity", "Entries of counters in memory from which on new names are rejected.")
	counterRejectedDesc = desc("counter_rejected_total", "Calls that were rejected because the counters in memory were full.")

	lostDesc   = desc("stats_lost_total", "Requests that are missing from the statistics, because the archive was unavailable for too long.")
	alertsDesc = desc("alerts_firing", "Alerts of weir that are firing.")

	xdsConnectedDesc = desc("envoy_xds_connected", "Whether weir is connected to the xDS server.")
	xdsVersionDesc   = desc("envoy_xds_version_info", "The version of the Envoy configuration in force, as the xDS server names it.", "version")
	xdsResponsesDesc = desc("envoy_xds_responses_total", "Responses of the xDS server, by result.", "result")

	saveFailuresDesc = desc("data_save_failures_total", "Saves of a file in the data directory that failed.", "file")
	savedDesc        = desc("data_saved_timestamp_seconds", "Time at which a file in the data directory was last saved.", "file")
	unusableDesc     = desc("data_unusable_files", "Files in the data directory that could not be used at startup and were moved aside.")
)

// Describe implements [prometheus.Collector].
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range described {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	c.collectRequests(ch)
	c.collectHolds(ch)
	c.collectReserved(ch)
	c.collectRules(ch)
	gauge(ch, upDesc, number(c.options.StoreUp()))
	if c.options.StoreFunctions != nil {
		gauge(ch, functionsDesc, number(c.options.StoreFunctions()))
	}
	if c.options.Leases != nil {
		c.collectLeases(ch)
	}
	gauge(ch, delayedDesc, float64(c.options.Delayed()))
	if c.options.Keys != nil {
		stats := c.options.Keys()
		gauge(ch, keysDesc, float64(stats.Keys))
		gauge(ch, maxKeysDesc, float64(c.options.MaxKeys))
		counter(ch, expiredDesc, uint64(stats.Expired))
		counter(ch, evictedDesc, uint64(stats.Evicted))
	}
	if c.options.Counters != nil {
		u := c.options.Counters()
		gauge(ch, counterEntriesDesc, float64(u.Entries))
		gauge(ch, counterCapacityDesc, float64(u.Capacity))
		counter(ch, counterRejectedDesc, uint64(u.Rejected))
	}
	if c.options.Queues != nil {
		for _, q := range c.options.Queues() {
			collectQueue(ch, &q)
		}
	}
	if c.options.RESP != nil {
		collectRESP(ch, c.options.RESP())
	}
	if c.options.Tokens != nil {
		for result, n := range c.options.Tokens() {
			counter(ch, tokensDesc, uint64(n), result)
		}
	}
	c.collectAdaptive(ch)
	c.collectProtection(ch)
	if c.options.Statistics != nil {
		s := c.options.Statistics()
		counter(ch, lostDesc, uint64(s.Lost))
		gauge(ch, alertsDesc, float64(s.Alerts))
	}
	if c.options.EnvoyXDS != nil {
		collectXDS(ch, c.options.EnvoyXDS())
	}
	if c.options.Files != nil {
		collectFiles(ch, c.options.Files())
	}
}

func (c *collector) collectLeases(ch chan<- prometheus.Metric) {
	s, rules := c.options.Leases(), c.rules.Load()
	for how, n := range map[string]int64{"local": s.Local, "denied": s.Denied, "asked": s.Asked} {
		counter(ch, leaseChecksDesc, uint64(n), how)
	}
	counter(ch, leaseMessagesDesc, uint64(s.Messages))
	gauge(ch, leaseKeysDesc, float64(s.Keys))
	byLabel := map[string]lease.NameStats{}
	for _, one := range s.Names {
		label := tally.Other
		if r, own := rules.ByID(one.Name); own {
			label = r.label
		}
		sum := byLabel[label]
		sum.Local += one.Local
		sum.Denied += one.Denied
		sum.Asked += one.Asked
		sum.Leased += one.Leased
		sum.Returned += one.Returned
		sum.Lost += one.Lost
		byLabel[label] = sum
	}
	for rule, n := range byLabel {
		counter(ch, leaseRulesDesc, uint64(n.Local), rule, "local")
		counter(ch, leaseRulesDesc, uint64(n.Denied), rule, "denied")
		counter(ch, leaseRulesDesc, uint64(n.Asked), rule, "asked")
		gauge(ch, leaseUnitsDesc, float64(n.Leased), rule)
		counter(ch, leaseReturnedDesc, uint64(n.Returned), rule)
		counter(ch, leaseLostDesc, uint64(n.Lost), rule)
	}
}

func collectRESP(ch chan<- prometheus.Metric, r RESP) {
	gauge(ch, respConnectionsDesc, float64(r.Connections))
	counter(ch, respRejectedDesc, r.Rejected)
	for _, c := range r.Commands {
		result := "ok"
		if c.Failed {
			result = "error"
		}
		counter(ch, respCommandsDesc, c.Total, c.Command, result)
	}
}

func collectXDS(ch chan<- prometheus.Metric, s EnvoyXDS) {
	gauge(ch, xdsConnectedDesc, number(s.Connected))
	if s.Version != "" {
		gauge(ch, xdsVersionDesc, 1, s.Version)
	}
	counter(ch, xdsResponsesDesc, s.Accepted, "accepted")
	counter(ch, xdsResponsesDesc, s.Rejected, "rejected")
}

func collectFiles(ch chan<- prometheus.Metric, files []File) {
	unusable := 0
	for _, f := range files {
		counter(ch, saveFailuresDesc, uint64(f.Failures), f.Name)
		if !f.Saved.IsZero() {
			gauge(ch, savedDesc, float64(f.Saved.UnixMilli())/1000, f.Name)
		}
		if f.Unusable {
			unusable++
		}
	}
	gauge(ch, unusableDesc, float64(unusable))
}

func collectQueue(ch chan<- prometheus.Metric, q *Queue) {
	gauge(ch, queueDesc, float64(q.Ready), q.Name, "ready")
	gauge(ch, queueDesc, float64(q.Delayed), q.Name, "delayed")
	gauge(ch, queueDesc, float64(q.Leased), q.Name, "leased")
	gauge(ch, queueDesc, float64(q.Dead), q.Name, "dead")
	gauge(ch, queueAgeDesc, q.Age.Seconds(), q.Name)
}

func (c *collector) collectRequests(ch chan<- prometheus.Metric) {
	for o := range engine.Outcomes {
		sum := uint64(0)
		for p := rule.Low; p <= rule.Critical; p++ {
			n := c.requestsOf(p, o)
			sum += n
			if n > 0 || o == engine.OutcomeAllowed || o == engine.OutcomeDenied { // these begin at 0
				counter(ch, prioritiesDesc, n, p.String(), o.String())
			}
		}
		counter(ch, requestsDesc, sum, o.String())
	}
	decisions := histogram{bounds: bounds[:]}
	for i := range c.stripes {
		decisions.add(&c.stripes[i].decision)
	}
	ch <- decisions.metric(secondsDesc)
	for p := range policies {
		counter(ch, degradedDesc, c.degraded[p].Load(), policyNames[p])
	}
	for k := range kinds {
		counter(ch, failuresDesc, c.failures[k].Load(), kindNames[k])
	}
}

// requestsOf adds up the stripes. A verdict without a priority is normal.
func (c *collector) requestsOf(p rule.Priority, o engine.Outcome) (n uint64) {
	for i := range c.stripes {
		n += c.stripes[i].requests[p][o].Load()
		if p == rule.Normal {
			n += c.stripes[i].requests[0][o].Load()
		}
	}
	return n
}

func (c *collector) collectRules(ch chan<- prometheus.Metric) {
	f := c.rules.Load()
	for i, l := range f.All {
		if i < len(f.All)-1 || f.Beyond || l.any() {
			collectRule(ch, l)
		}
	}
	for mode, n := range f.modes {
		gauge(ch, rulesDesc, float64(n), rule.Mode(mode).String())
	}
	gauge(ch, versionDesc, float64(f.version))
	if hash := c.rulesHash.Load(); hash != nil {
		gauge(ch, hashDesc, float64(*hash))
	}
	if !f.since.IsZero() {
		gauge(ch, sinceDesc, float64(f.since.UnixMilli())/1000)
	}
	gauge(ch, reloadedDesc, number(!c.rulesStale.Load() && !c.envoyStale.Load() && !c.clientsStale.Load() && !c.pricesStale.Load()))
	counter(ch, failedDesc, c.reloadFailed.Load())
}

// collectRule shows what a rule ordinarily says, so that its series begin at 0, and
// whatever else it has ever said.
func collectRule(ch chan<- prometheus.Metric, l *labelled) {
	no := engine.OutcomeDenied
	switch l.mode {
	case rule.Shadow:
		no = engine.OutcomeShadowDenied
	case rule.Soft:
		no = engine.OutcomeSoftDenied
	}
	for s := range sayings {
		if n := l.said(s); n > 0 || s == engine.OutcomeAllowed || s == no {
			counter(ch, decisionsDesc, n, l.label, s.String())
		}
	}
	for name, n := range l.levels.Load().All {
		counter(ch, levelsDesc, n.Load(), l.label, name)
	}
	if n := l.warned.Load(); n > 0 || l.warns {
		counter(ch, warningsDesc, n, l.label)
	}
	if x := l.exprs.Load(); x != nil {
		counter(ch, expressionsDesc, uint64(x.failures()), l.label)
	}
	l.holds.Load().collect(ch, l.label)
	l.places.Load().collect(ch, l.label)
	l.spending.Load().collect(ch, l.label)
}

func (c *ruleCounters) any() bool {
	for s := range sayings {
		if c.said(s) > 0 {
			return true
		}
	}
	return c.holds.Load() != nil || c.places.Load() != nil || c.spending.Load() != nil || c.warned.Load() > 0
}

func counter(ch chan<- prometheus.Metric, d *prometheus.Desc, n uint64, labels ...string) {
	counterOf(ch, d, float64(n), labels...)
}

func counterOf(ch chan<- prometheus.Metric, d *prometheus.Desc, value float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, labels...)
}

func gauge(ch chan<- prometheus.Metric, d *prometheus.Desc, value float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
