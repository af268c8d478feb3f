//go:build unix

package filerepo

import (
	"fmt"
	"os"
	"syscall"
)

// syncFolder makes new names in a folder outlive a loss of power.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("filerepo: %w", err)
	}
	defer folder.Close()
	if err := folder.Sync(); err != nil {
		return fmt.Errorf("filerepo: %w", err)
	}
	return nil
}

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
