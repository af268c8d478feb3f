package app

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// warnConcurrency tells that a check does not see the end of its request. A gateway does.
func (r *rules) warnConcurrency(table *rule.Table) {
	if table.Concurrent() && r.app.options.Gateway == nil {
		r.warn(table, (*rule.Entry).Concurrent, "rules have concurrency, and a check or /v1/authz cannot say when its request has ended, so its place is free only after hold_ttl; use reserve and settle, the gateway or middleware")
	}
}

// warnLeases tells of leases for which the store is too far away, as measured at the start.
func (r *rules) warnLeases(table *rule.Table) {
	far := r.app.store.trip
	if far == 0 {
		return
	}
	leases := func(least time.Duration) func(*rule.Entry) bool {
		return func(c *rule.Entry) bool {
			return slices.ContainsFunc(c.Every(), func(l *weir.Compiled) bool {
				term := cmp.Or(l.Lease(), r.app.options.Lease)
				return l.Leasable() && term != 0 && (least == 0 || term < least)
			})
		}
	}
	said := far.Round(100 * time.Microsecond)
	if timeout := r.app.store.redis.Timeout(); timeout <= 2*far {
		r.warn(table, leases(0), "rules have leases, and the store's timeout is not more than two round trips, so many checks may be decided without the store; set a longer timeout in --store",
			"timeout", timeout, "round_trip", said, "at_least", (3 * far).Round(time.Millisecond))
	}
	r.warn(table, leases(10*far), "rules have leases of less than ten round trips to the store, so requests wait for it; write a longer lease",
		"round_trip", said, "at_least", (10 * far).Round(time.Millisecond))
}

// warnRestart tells of windows in which a restart is likely, and resets the usage.
func (r *rules) warnRestart(table *rule.Table) {
	if r.app.store.memory == nil || r.app.options.Data != "" {
		return
	}
	r.warn(table, func(c *rule.Entry) bool {
		return slices.ContainsFunc(c.Every(), func(l *weir.Compiled) bool { return l.Limit().Period > 24*time.Hour })
	}, "rules have limits for more than a day, and a restart resets their usage; set --data, or use Redis as the store")
}

// warn names the rules that are in force and of which something is true.
func (r *rules) warn(table *rule.Table, is func(*rule.Entry) bool, message string, more ...any) {
	var ids []string
	for _, c := range table.Rules() {
		if c.Mode != rule.Off && is(c) {
			ids = append(ids, c.ID)
		}
	}
	if len(ids) > 0 {
		r.app.options.Logger.Warn(message, append(more, "rules", strings.Join(ids[:min(10, len(ids))], ", "))...)
	}
}
