//go:build !linux

package testkit

import "syscall"

func attr() *syscall.SysProcAttr { return nil }
