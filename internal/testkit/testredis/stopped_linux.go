package testredis

import (
	"bytes"
	"fmt"
	"os"
)

// stopped reports whether a SIGSTOP has reached the process. The state follows the
// program's name, which is in parentheses and may contain anything.
func stopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" T"))
}
