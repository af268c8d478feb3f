//go:build race

package metrics

// raceEnabled is whether the race detector makes everything slow and allocates.
const raceEnabled = true
