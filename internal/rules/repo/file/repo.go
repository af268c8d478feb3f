// Package file keeps the document of rules in a file that people edit and that
// the API rewrites.
//
// Next to a document rules.yaml is a directory rules.yaml.history with
//
//	7.yaml         version 7: a line that says when, by whom and what, then the document
//	next.yaml      a version that is being written
//	unusable.yaml  a document with errors that was overwritten by the API
//	lock           held by the process that writes
//
// It has the last repo.MaxHistory versions, and may be deleted; then versions are
// counted from 1 again. All files have the permission bits of the document, because
// they have its secrets.
//
// A change by hand is a version by "file", as soon as a repository sees it. A document
// with errors is no version: the one before it stays in force until the errors are
// mended. So does one of which nothing is left, which happens when a disk is full;
// "rules: []" is how to say that there are none.
//
// A crash leaves the old document or the new one. First the new version is written to
// next.yaml, then the document is replaced, then next.yaml gets its number. The next
// process compares the two to find out whether the crash was before or after the
// replacement.
package file

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/order"
	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/rules/ruleedit"
	"github.com/weirhq/weir/internal/watch"
	"github.com/weirhq/weir/rule"
)

// Options of a repository. The zero value is ready to use.
type Options struct {
	// History is the directory of older versions. Default the path of the document
	// and ".history". All who use a document must agree on it. Where it cannot be
	// written, as beside a mounted ConfigMap, older versions are kept in memory only,
	// and every process counts its own.
	History string

	// ReadOnly keeps older versions in memory only, so that nothing is written but by
	// Write. Default false.
	ReadOnly bool

	// Create makes a document without rules if there is none. Default false.
	Create bool

	// Rules are the options with which the rules are compiled.
	Rules rule.Options

	watch watch.Options
}

// Repository is a document of rules in a file. It is safe for concurrent use, also by
// several processes.
type Repository struct {
	*ruleedit.Reader

	path    string // absolute
	name    string // for messages
	options Options
	archive archive
	memory  error      // why the archive is in memory only
	turn    order.Lock // of who writes
	pause   func(context.Context) error

	mu       sync.Mutex
	rejected *rejection // the document that was found last, if it is not used
}

// rejection is a document that is not used. Without a digest it cannot be read.
type rejection struct {
	digest string
	why    error
}

var _ repo.Repository = (*Repository)(nil)

// Open returns a repository on a file of YAML, or of JSON if its name ends in .json.
// It is an error if there is no such file, unless Options.Create is set, or if neither
// it nor an older version can be used.
func Open(path string, o Options) (*Repository, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	if o.History, err = filepath.Abs(cmp.Or(o.History, path+".history")); err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	r := &Repository{
		path: path, name: filepath.Base(path), options: o,
		pause: watch.Pause, Reader: &ruleedit.Reader{Name: filepath.Base(path), Options: o.Rules},
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	f := r.look(ctx)
	if f.version == nil {
		return nil, f.trouble
	}
	return r, nil
}

// begin finds the document, or makes one, and the archive.
func (r *Repository) begin(ctx context.Context) error {
	info, err := os.Stat(r.path)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case missing && !r.options.Create:
		return fmt.Errorf("rules: there is no file %s; write your rules into it, or \"rules: []\" if there are none yet", r.path)
	case missing:
	case err != nil:
		return fmt.Errorf("rules: %w", err)
	case info.IsDir():
		return fmt.Errorf("rules: %s is a directory; name the file with the rules", r.path)
	}
	mode := fs.FileMode(0o600) // there may be secrets in it
	if !missing {
		mode = info.Mode().Perm()
	}
	if r.options.ReadOnly {
		r.archive = &shelf{}
	} else if err := tryFolder(r.options.History, mode); err == nil {
		r.archive = &folder{path: r.options.History, ext: filepath.Ext(r.path)}
	} else {
		r.archive, r.memory = &shelf{}, fmt.Errorf("rules: older versions are kept in memory only: %w", err)
	}
	if missing {
		return r.create(ctx)
	}
	return nil
}

// create makes a document without rules.
func (r *Repository) create(ctx context.Context) error {
	unlock, err := r.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(r.path); err == nil {
		return nil // another process was faster
	}
	numbers, err := r.archive.numbers()
	if err != nil {
		return err
	}
	if len(numbers) > 0 {
		return fmt.Errorf("rules: there is no file %s, but there are older versions of it in %s; copy back the one that you want, or remove them all", r.path, r.options.History)
	}
	source := "# Which requests are limited, by which key, and how: see docs/reference/rules.md.\nrules: []\n"
	if strings.HasSuffix(r.name, ".json") {
		source = "{\n  \"rules\": []\n}\n"
	}
	staged, err := stageFile(r.path, []byte(source), 0o600)
	if err != nil {
		return err
	}
	if err := replaceFile(r.path, staged); err != nil {
		return err
	}
	if d, err := readDocument(r.path); err == nil {
		r.record(d) // without a rest, since nobody else is writing it; if it fails, look tries again
	}
	return nil
}

// Current implements repo.Repository.
func (r *Repository) Current(ctx context.Context) (repo.Version, error) {
	if err := ctx.Err(); err != nil {
		return repo.Version{}, err
	}
	f := r.look(ctx)
	switch {
	case ctx.Err() != nil:
		return repo.Version{}, ctx.Err()
	case f.version == nil:
		return repo.Version{}, f.trouble
	}
	f.version.Trouble = f.trouble
	return *f.version, nil
}

// History implements repo.Repository.
func (r *Repository) History(ctx context.Context) ([]repo.Version, error) {
	current, err := r.Current(ctx) // which is recorded if it was not
	if err != nil {
		return nil, err
	}
	numbers, err := r.archive.numbers()
	if err != nil {
		return nil, err
	}
	var versions []repo.Version
	for _, n := range numbers {
		if e, err := r.archive.head(n); err == nil { // or it was pruned by another process just now, or is damaged
			versions = append(versions, e.Version)
		}
	}
	return repo.History(current, versions), nil
}

// Find implements repo.Repository.
func (r *Repository) Find(ctx context.Context, number int64) (repo.Version, error) {
	current, err := r.Current(ctx)
	if err != nil || current.Number == number {
		return current, err
	}
	e, err := r.archive.load(number)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return repo.Version{}, repo.ErrNoVersion
	case err != nil:
		return repo.Version{}, err
	}
	return e.Version, nil
}
