package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/weirhq/weir/metrics"
)

// The files of the directory that Options.Data names.
const (
	keysFile     = "keys.snapshot"
	statsFile    = "stats.snapshot"
	countersFile = "counters.snapshot"
	queuesFile   = "queues.snapshot"
	seenFile     = "rules.seen.yaml"

	clientsFile   = "clients.ndjson"
	overridesFile = "overrides.seen.json"
	xdsFile       = "envoy.seen.pb"
)

// kept is something that survives a restart, in a file of the directory.
type kept struct {
	file     string
	what     string // for people: usage
	snapshot func(io.Writer) error
	restore  func(io.Reader) error
}

// savingTime is what a process that stops may need to save, after its grace.
const savingTime = 5 * time.Second

// openData takes the directory before anything in it is read. One who is started while
// another stops, as in a restart that overlaps, waits until that has saved.
func (a *App) openData(ctx, _ context.Context) error {
	if a.options.Data == "" {
		return nil
	}
	wait := a.options.longestGrace() + savingTime
	var err error
	a.data, err = openDataDir(ctx, a.options.Data, wait, func(owner string) {
		a.options.Logger.Warn("another process uses the data directory; waiting for it to stop",
			"data", a.options.Data, "owner", owner, "at_most", wait)
	}, keysFile, statsFile, countersFile, queuesFile, seenFile, clientsFile, overridesFile, xdsFile)
	if err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	a.later(a.data.Close)
	return nil
}

// restoreAndKeep restores what the last process saved, and saves it again as soon as this process
// has started. weir starts even if a file cannot be used.
func (a *App) restoreAndKeep(k kept) {
	if a.data == nil {
		return
	}
	switch found, err := a.data.Restore(k.file, k.restore); {
	case err != nil:
		a.options.Logger.Error("could not restore data; it restarts from zero", "what", k.what, "file", k.file, "error", err)
	case found:
		a.options.Logger.Info("restored data", "what", k.what, "file", k.file)
	}
	a.kept = append(a.kept, k)
	a.later(func() { a.save(k) })
}

// save writes a snapshot, in one piece or not at all, and nothing before the start has
// succeeded: what is in memory until then is at best what is on the disk already.
func (a *App) save(k kept) {
	select {
	case <-a.started:
	default:
		return
	}
	if err := a.data.Save(k.file, k.snapshot); err != nil {
		a.options.Logger.Error("could not save data", "what", k.what, "file", k.file, "error", err)
	}
}

// beginSaving is the last step of a start. From then on everything is saved, at once and
// from time to time, which limits what a crash can take along.
func (a *App) beginSaving(_, background context.Context) error {
	if a.data == nil {
		return nil
	}
	moved, err := a.data.SetAside()
	for file, to := range moved {
		a.options.Logger.Error("moved an unusable file aside", "file", file, "to", to)
	}
	if err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	close(a.started)
	a.background.Go(func() {
		every := time.Tick(a.options.SnapshotEvery)
		for {
			for _, k := range a.kept {
				a.save(k)
			}
			select {
			case <-every:
			case <-background.Done():
				return
			}
		}
	})
	return nil
}

// notSaved is what could not be saved when it was tried last.
func (a *App) notSaved() error {
	if a.data == nil {
		return nil
	}
	var all []error
	for _, f := range a.data.Files() {
		if err := f.trouble(); err != nil {
			all = append(all, fmt.Errorf("--data: %w", err))
		}
	}
	return errors.Join(all...)
}

// files are how the data directory fares, for /metrics.
func (a *App) files() (all []metrics.File) {
	for _, f := range a.data.Files() {
		all = append(all, f.File)
	}
	return all
}
