//go:build !race

package garbage

const raceEnabled = false
