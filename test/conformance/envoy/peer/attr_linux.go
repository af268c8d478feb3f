package peer

import "syscall"

// attr makes the service die with the process that started it, however that ends.
func attr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
