package scenario

import (
	"embed"
	"errors"
	"io/fs"
)

//go:embed cases/*.txt
var caseFiles embed.FS

// Cases returns the scenarios that every store must pass, one file a case.
func Cases() ([]*Script, error) {
	files, err := fs.Glob(caseFiles, "cases/*.txt")
	if err != nil {
		return nil, err
	}
	var scripts []*Script
	var errs []error
	for _, file := range files {
		src, err := caseFiles.ReadFile(file)
		if err != nil {
			return nil, err
		}
		script, err := Parse(file, src)
		scripts, errs = append(scripts, script), append(errs, err)
	}
	return scripts, errors.Join(errs...)
}
