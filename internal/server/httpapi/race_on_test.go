//go:build race

package httpapi

// raceEnabled is whether the race detector makes everything slow.
const raceEnabled = true
