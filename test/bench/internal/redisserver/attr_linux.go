package redisserver

import "syscall"

// attr makes the server die with whoever started it.
func attr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
