//go:build !linux

package peer

import "syscall"

func attr() *syscall.SysProcAttr { return nil }
