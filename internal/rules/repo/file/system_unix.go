//go:build unix

package file

import (
	"os"
	"syscall"
)

// keepOwner gives a file the owner of another. Only root can do that, and for anybody
// else it makes no difference, or cannot be helped.
func keepOwner(from, to string) {
	info, err := os.Stat(from)
	if err != nil {
		return
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		_ = os.Chown(to, int(stat.Uid), int(stat.Gid))
	}
}
