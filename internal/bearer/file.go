package bearer

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/weirhq/weir/internal/disk"
)

const maxFile = 1 << 20 // bytes

// ReadFile is Parse of a file, which it names in errors.
func ReadFile(path string) (*List, error) {
	source, err := disk.ReadFile(path, maxFile, "token file")
	if err != nil {
		return nil, err
	}
	l, err := Parse(source)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

// ReadOne returns the token of a file with exactly one token, for a client. The file
// contains the token alone, or a list with one line.
func ReadOne(path string) (string, error) {
	source, err := disk.ReadFile(path, maxFile, "token file")
	if err != nil {
		return "", err
	}
	lines, err := split(source)
	if err == nil && len(lines) > 1 {
		err = errors.New("token: the file has several tokens; use a file with one token")
	}
	if err == nil {
		_, err = lines[0].entry()
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return lines[0].words[len(lines[0].words)-1], nil
}

// Exposed is whether everybody on this machine can read or write a file. A group may,
// since that is how secrets are handed into containers. It says nothing of files that
// are not there, and nothing on Windows, where permission bits do not tell.
func Exposed(path string) bool {
	info, err := os.Stat(path)
	return err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o006 != 0
}
