//go:build !unix

package filerepo

// syncFolder has nothing to do: elsewhere a folder cannot be synced, or need not.
func syncFolder(string) error { return nil }

// keepOwner has nothing to do: elsewhere a folder says whose its files are.
func keepOwner(string, string) {}
