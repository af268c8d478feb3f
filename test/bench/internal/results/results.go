// Package results keeps what a run has found out.
package results

import (
	"os"
	"path/filepath"
)

// Print writes the tables to standard output, and all files to a directory
// unless its name is empty.
func Print(tables []byte, dir string, files map[string][]byte) error {
	if _, err := os.Stdout.Write(tables); err != nil || dir == "" {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
