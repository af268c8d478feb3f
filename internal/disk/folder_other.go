//go:build !unix

package disk

// SyncFolder has nothing to do: elsewhere a folder cannot be synced, or need not.
func SyncFolder(string) error { return nil }
