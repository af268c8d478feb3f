//go:build !linux

package run

import "time"

// waits and stolen are not known; the echo is.
func waits(int) map[string]time.Duration { return nil }

func stolen() map[string]time.Duration { return nil }
