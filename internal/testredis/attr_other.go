//go:build !linux

package testredis

import "syscall"

func attr() *syscall.SysProcAttr { return nil }

// stopped takes the signal for the deed; only Linux says cheaply.
func stopped(int) bool { return true }
