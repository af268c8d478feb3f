package testkit

import "syscall"

// attr makes a program die with this process, however that ends.
func attr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
