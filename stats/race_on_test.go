//go:build race

package stats

// raceEnabled is whether the race detector makes everything slow and allocates.
const raceEnabled = true
