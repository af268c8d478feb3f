//go:build unix

package disk

import (
	"errors"
	"os"
	"syscall"
)

// SyncFolder makes new names in a folder outlive a loss of power.
func SyncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	err = folder.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil // a file system that cannot is as safe as it can be
	}
	return err
}
