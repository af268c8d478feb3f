package disk

import (
	"errors"
	"os"
	"syscall"
)

// TryLock takes a lock, which is held until the file is closed or the process ends: it
// opens the file without sharing, so that no other process can open it.
func TryLock(path string) (*os.File, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	const sharedWithNobody = 0
	handle, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, sharedWithNobody, nil,
		syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	const sharingViolation = syscall.Errno(32)
	switch {
	case errors.Is(err, sharingViolation):
		return nil, ErrLocked
	case err != nil:
		return nil, err
	}
	return os.NewFile(uintptr(handle), path), nil
}

// Holds is always true: a file that is open without sharing cannot be removed.
func Holds(*os.File, string) bool { return true }
