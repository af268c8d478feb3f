//go:build race

package rule_test

// raceEnabled is whether the race detector makes everything slow.
const raceEnabled = true
