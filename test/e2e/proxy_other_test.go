//go:build !linux

package e2e

import "syscall"

// attr: only Linux lets a program die with the one that started it.
func attr() *syscall.SysProcAttr { return nil }

// stopped: there is no other sign, and the signal is fast.
func stopped(int) bool { return true }
