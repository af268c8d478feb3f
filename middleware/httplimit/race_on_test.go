//go:build race

package httplimit

// raceEnabled is whether the race detector allocates besides.
const raceEnabled = true
