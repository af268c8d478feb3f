//go:build !linux

package e2e

import "syscall"

// attr: only Linux lets a program die with the one that started it.
func attr() *syscall.SysProcAttr { return nil }

// stopped: nobody else says so, and the signal is quick.
func stopped(int) bool { return true }
