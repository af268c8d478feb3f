//go:build !unix

package filerepo

// keepOwner has nothing to do: elsewhere a folder says whose its files are.
func keepOwner(string, string) {}
