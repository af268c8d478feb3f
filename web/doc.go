// Package web is the dashboard: a page that shows what weir does, on which rules are
// changed and clients looked up.
//
// It is written in Svelte and TypeScript, in src, built by "make web" into dist, and
// embedded from there. The page reads and writes the HTTP API as any other client does,
// with the token of whoever looks at it; there is no other way in. Nothing on it comes
// from another host.
package web
