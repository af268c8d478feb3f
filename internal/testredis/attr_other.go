//go:build !linux

package testredis

import "syscall"

func attr() *syscall.SysProcAttr { return nil }
