package testredis

import "syscall"

// attr makes a server die with the test that started it, however that ends.
func attr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
