//go:build !linux

package testredis

// stopped takes the signal for the deed; only Linux says cheaply.
func stopped(int) bool { return true }
