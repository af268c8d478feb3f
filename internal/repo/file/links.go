package file

import (
	"os"
	"path/filepath"
	"strings"
)

// maxLinks is how many symbolic links are followed, as by Linux.
const maxLinks = 40

// entries returns, by directory, the names that decide what is found at a path: the
// file itself, and every symbolic link on the way to it. Kubernetes replaces a
// ConfigMap by turning one of these, "..data", while the file's own link stays.
func entries(path string) map[string][]string {
	found := map[string][]string{}
	root := filepath.VolumeName(path) + string(filepath.Separator)
	rest := names(strings.TrimPrefix(path, root))
	folder := root
	for links := 0; len(rest) > 0 && links < maxLinks; {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			folder = filepath.Dir(folder)
			continue
		}
		target, err := os.Readlink(filepath.Join(folder, name))
		isLink := err == nil
		if isLink || len(rest) == 0 {
			found[folder] = append(found[folder], name)
		}
		switch {
		case !isLink:
			folder = filepath.Join(folder, name)
			continue
		case filepath.IsAbs(target):
			folder = filepath.VolumeName(target) + string(filepath.Separator)
			target = strings.TrimPrefix(target, folder)
		}
		links++
		rest = append(names(target), rest...)
	}
	return found
}

// names are the parts of a path.
func names(path string) []string {
	return strings.FieldsFunc(filepath.Clean(path), func(c rune) bool { return c == filepath.Separator })
}
