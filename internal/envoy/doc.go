// Package envoy reads the configuration of Envoy's rate limit service, the one that
// people know from envoyproxy/ratelimit, and finds what it says of a request.
//
// A file is one domain: a tree of descriptors, some of which have limits. A request
// brings lists of entries, and each list leads from the root of its domain to a node,
// or to none. [Read] makes a [Config] of files, [Open] of a directory that may change;
// [Domain.Find] finds the node, and [Domain.AppendKey] names the counter.
//
// The files are taken as they are. What they may say besides, such as another algorithm
// than the fixed window, is in docs/envoy.md.
//
// The package decides nothing, and speaks no protocol.
package envoy
