//go:build race

package garbage

// raceEnabled is whether the race detector makes everything slow and allocates.
const raceEnabled = true
