// Package peer builds and runs envoyproxy/ratelimit, to compare weir with it.
package peer
