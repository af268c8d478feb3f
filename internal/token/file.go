package token

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
)

const maxFile = 1 << 20 // bytes

// ReadFile is Parse of a file, which it names in errors.
func ReadFile(path string) (*List, error) {
	source, err := read(path)
	if err != nil {
		return nil, err
	}
	l, err := Parse(source)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

// ReadOne returns the token of a file with just one, for whoever is to show it. The
// file is the token alone, or a list with one line.
func ReadOne(path string) (string, error) {
	source, err := read(path)
	if err != nil {
		return "", err
	}
	lines, err := split(source)
	if err == nil && len(lines) > 1 {
		err = errors.New("token: there are several tokens; write the one to use into a file of its own")
	}
	if err == nil {
		_, err = lines[0].entry()
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return lines[0].words[2], nil
}

func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	source, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(source) > maxFile {
		return nil, fmt.Errorf("%s: it is larger than 1 MiB, which no file of tokens is", path)
	}
	return source, nil
}

// Exposed is whether everybody on this machine can read or write a file. A group may,
// since that is how secrets are handed into containers. It says nothing of files that
// are not there, and nothing on Windows, where permission bits do not tell.
func Exposed(path string) bool {
	info, err := os.Stat(path)
	return err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o006 != 0
}
