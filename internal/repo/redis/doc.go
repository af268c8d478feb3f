// Package redis keeps the document of rules in Redis, for many instances at once.
//
// With the prefix "weir:" its keys are
//
//	weir:{rules}:current  a hash: number, time, author, summary, sha256, source
//	weir:{rules}:history  a hash: number → time, author and summary as JSON
//	weir:{rules}:sources  a hash: number → source
//
// and the channel weir:{rules}:changed tells of new versions. The braces put them all on
// one slot of a cluster. Times are microseconds, by Redis's clock.
//
// No key here expires. Everything else that weir keeps in Redis does, but this is
// configuration: that nobody has changed the limits for a month is no reason to have
// none. It is bounded instead: repo.MaxHistory versions, and not more than 32 MB. A
// Redis that keeps rules should write to disk, and have the maxmemory-policy noeviction
// or one of volatile-*, which spare keys that do not expire.
//
// A version is written by a script that looks first whether the latest is still the one
// that it is based on. To mend a document by hand, set source and a higher number:
//
//	redis-cli -x HSET weir:{rules}:current number 8 source < rules.yaml
//
// It becomes a version by "redis" when an instance sees it. One with errors is reported
// and not used; the latest version in the history is that can be.
package redis
