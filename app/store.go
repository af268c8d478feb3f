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

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/store/redis"
)

// store is where limits are kept: one of the two.
type store struct {
	weir.Store
	memory *memory.Store
	redis  *redis.Store
	config redis.Config // of redis
}

// up is whether the store answers, as far as is known without asking it.
func (s *store) up() bool { return s.redis == nil || s.redis.Available() }

func (a *App) openStore(ctx, background context.Context) error {
	if a.options.Data != "" {
		if err := os.MkdirAll(a.options.Data, 0o700); err != nil {
			return fmt.Errorf("--data: %w", err)
		}
	}
	keys, err := memoryKeys(a.options.Store)
	if err == errNotMemory {
		return a.openRedis(ctx)
	}
	a.store.memory = memory.New(memory.Options{MaxKeys: keys})
	a.store.Store = a.store.memory
	if a.options.Data == "" {
		return nil
	}
	a.restore()
	a.later(a.save)
	a.background.Go(func() {
		every := time.NewTicker(a.options.SnapshotEvery)
		defer every.Stop()
		for {
			select {
			case <-every.C:
				a.save()
			case <-background.Done():
				return
			}
		}
	})
	return nil
}

func (a *App) openRedis(ctx context.Context) error {
	var err error
	if a.store.config, err = redis.ParseURL(a.options.Store); err != nil {
		return fmt.Errorf("--store: %w", err)
	}
	if a.store.redis, err = a.store.config.Open(); err != nil {
		return fmt.Errorf("--store: %w", err)
	}
	a.store.Store = a.store.redis
	a.later(a.store.redis.Close)
	err = a.store.redis.Ping(ctx)
	switch {
	case err == nil:
		return nil
	case a.options.RequireStore:
		return fmt.Errorf("the store %s does not answer, and --require-store is set: %w", redis.Redact(a.options.Store), err)
	}
	a.options.Logger.Warn("the store does not answer; each rule goes on as its on_failure says until it does",
		"store", redis.Redact(a.options.Store), "error", err)
	return nil
}

// snapshot is the file of what clients have used.
func (a *App) snapshot() string { return filepath.Join(a.options.Data, "keys.snapshot") }

// restore begins with what the last process has saved. Limits that begin anew are the
// lesser evil: a damaged file keeps nobody from starting.
func (a *App) restore() {
	f, err := os.Open(a.snapshot())
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		defer f.Close()
		err = a.store.memory.Restore(bufio.NewReader(f))
	}
	if err != nil {
		a.options.Logger.Warn("what clients have used could not be restored; their limits begin anew", "error", err)
		return
	}
	a.options.Logger.Info("restored what clients have used", "keys", a.store.memory.Stats().Keys)
}

// save writes the snapshot, in one piece or not at all.
func (a *App) save() {
	err := replaceFile(a.snapshot(), func(w io.Writer) error { return a.store.memory.Snapshot(w) })
	if err != nil {
		a.options.Logger.Error("what clients have used could not be saved", "error", err)
	}
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
