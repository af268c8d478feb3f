//go:build !linux

package redisserver

import "syscall"

func attr() *syscall.SysProcAttr { return nil }
