package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/weirhq/weir/internal/disk"
	"github.com/weirhq/weir/internal/rules/repo"
)

// Write implements repo.Repository. A document that is a symbolic link is not written:
// it comes from elsewhere, as a ConfigMap does, and would come again.
func (r *Repository) Write(ctx context.Context, d repo.Draft) (repo.Version, error) {
	v, err := r.write(ctx, d)
	switch {
	case errors.Is(err, syscall.EROFS):
		err = &repo.ReadOnlyError{Why: "the file system of " + r.name + " or of its history is read-only", Err: err}
	case errors.Is(err, fs.ErrPermission):
		err = &repo.ReadOnlyError{Why: "the user that runs weir has no permission to write " + r.name + ", its folder or its history", Err: err}
	}
	return v, err
}

func (r *Repository) write(ctx context.Context, d repo.Draft) (repo.Version, error) {
	folder, err := r.writable()
	if err != nil {
		return repo.Version{}, err
	}
	current, err := r.Current(ctx)
	if err != nil {
		return repo.Version{}, err
	}
	if d.Base != current.Number {
		return repo.Version{}, &repo.ConflictError{Base: d.Base, Current: current}
	}
	// To compile takes long, and is done before anybody has to wait for it. If the
	// document changes meanwhile, that is a conflict.
	next, err := d.Ready(r.Reader, current.Document)
	if err != nil {
		return repo.Version{}, err
	}
	unlock, err := r.lock(ctx)
	if err != nil {
		return repo.Version{}, err
	}
	defer unlock()
	for range 10 {
		f := r.reconcile(ctx)
		switch {
		case ctx.Err() != nil:
			return repo.Version{}, ctx.Err()
		case f.version == nil || f.unrecorded:
			return repo.Version{}, f.trouble
		case f.version.Number != d.Base:
			return repo.Version{}, &repo.ConflictError{Base: d.Base, Current: *f.version}
		}
		v, err := r.install(folder, next)
		if !errors.Is(err, errTouched) {
			return v, err
		}
	}
	return repo.Version{}, errTouched
}

// writable returns the archive if the document may be written.
func (r *Repository) writable() (*folder, error) {
	if info, err := os.Lstat(r.path); err == nil && info.Mode()&os.ModeSymlink != 0 {
		target, err := os.Readlink(r.path)
		if err != nil {
			return nil, fmt.Errorf("rules: %w", err)
		}
		return nil, &repo.ReadOnlyError{
			Why: r.name + " is a symbolic link, as Kubernetes mounts a ConfigMap",
			Err: fmt.Errorf("rules: %s is a symbolic link to %s, as Kubernetes mounts a ConfigMap, and is not written; change the rules where they come from", r.path, target),
		}
	}
	folder, ok := r.archive.(*folder)
	if !ok {
		return nil, fmt.Errorf("rules: the rules cannot be changed, because older versions cannot be saved; let weir write to %s: %w", r.options.History, r.memory)
	}
	return folder, nil
}

// errTouched is a document that somebody has changed by hand just now.
var errTouched = errors.New("rules: the document keeps changing; try again when nothing else writes to it")

// install makes what is ready the document and a version, in an order that stands a crash at
// any point. It needs the lock.
func (r *Repository) install(folder *folder, next repo.Version) (repo.Version, error) {
	_, highest := r.latest()
	before, err := readDocument(r.path)
	mode := fs.FileMode(0o600)
	switch {
	case err == nil:
		mode = before.mode
	case !errors.Is(err, fs.ErrNotExist):
		return repo.Version{}, err
	default: // it is gone, but its bits are known
		if info, err := os.Stat(folder.of(highest)); err == nil {
			mode = info.Mode().Perm()
		}
	}
	if before != nil {
		if _, err := r.Usable(before.source); err != nil {
			// Somebody has worked on it, and perhaps has not finished.
			next.Replaced = &repo.Replaced{Copy: folder.file("unusable")}
			if err := disk.WriteFile(next.Replaced.Copy, mode, before.source); err != nil {
				return repo.Version{}, named(err)
			}
		}
	}
	next.Number, next.Time = highest+1, time.Now().UTC().Truncate(time.Microsecond)
	if err := folder.propose(entry{next, repo.DigestOf(next.Source)}, mode); err != nil {
		return repo.Version{}, err
	}
	staged, err := stageFile(r.path, next.Source, mode)
	if err != nil {
		return repo.Version{}, err
	}
	// People take no lock. This leaves them a moment in which to be overwritten, but
	// not the time that a disk takes.
	if r.touched(before) {
		return repo.Version{}, errTouched
	}
	if err := replaceFile(r.path, staged); err != nil {
		return repo.Version{}, err
	}
	if err := folder.accept(next.Number); err != nil {
		return repo.Version{}, err
	}
	return next, nil
}

// touched is whether the document is neither what it was before, nor one that is
// recorded or known to be no good.
func (r *Repository) touched(before *document) bool {
	now, err := readDocument(r.path)
	if now.digestOrNone() != before.digestOrNone() {
		return true
	}
	return now != nil && r.recorded(now) == nil && r.rejection(now, err) == nil
}
