package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// kept is something that survives a restart, in a file of the directory that
// Options.Data names.
type kept struct {
	file     string
	what     string // for people: what clients have used
	snapshot func(io.Writer) error
	restore  func(io.Reader) error
}

func (a *App) openData(context.Context, context.Context) error {
	if a.options.Data == "" {
		return nil
	}
	if err := os.MkdirAll(a.options.Data, 0o700); err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	return nil
}

// keep begins with what the last process has saved, and has it saved from now on. To
// begin anew is the lesser evil: a damaged file keeps nobody from starting.
func (a *App) keep(k kept) {
	if a.options.Data == "" {
		return
	}
	if err := a.restore(k); err != nil {
		a.options.Logger.Warn(k.what+" could not be restored, and begins anew", "file", a.fileOf(k), "error", err)
	}
	a.kept = append(a.kept, k)
	a.later(func() { a.save(k) })
}

func (a *App) fileOf(k kept) string { return filepath.Join(a.options.Data, k.file) }

func (a *App) restore(k kept) error {
	f, err := os.Open(a.fileOf(k))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := k.restore(bufio.NewReader(f)); err != nil {
		return err
	}
	a.options.Logger.Info("restored " + k.what)
	return nil
}

// save writes a snapshot, in one piece or not at all.
func (a *App) save(k kept) {
	if err := replaceFile(a.fileOf(k), k.snapshot); err != nil {
		a.options.Logger.Error(k.what+" could not be saved", "error", err)
	}
}

// saveFromTimeToTime limits what a crash can take along.
func (a *App) saveFromTimeToTime(_, background context.Context) error {
	if len(a.kept) == 0 {
		return nil
	}
	a.background.Go(func() {
		every := time.NewTicker(a.options.SnapshotEvery)
		defer every.Stop()
		for {
			select {
			case <-every.C:
				for _, k := range a.kept {
					a.save(k)
				}
			case <-background.Done():
				return
			}
		}
	})
	return nil
}

// replaceFile writes a file beside the old one, and puts it in its place when it is
// whole and on the disk.
func replaceFile(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	w := bufio.NewWriter(f)
	if err := write(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
