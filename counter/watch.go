package counter

import (
	"cmp"
	"context"
	"time"
)

// WatchOptions say how to watch a hot list. The zero value is ready to use.
type WatchOptions struct {
	// After is the ID of the last event that is known. Default Latest: only what
	// happens from now on is told.
	After int64

	// Every is how often to ask, which is how late news is. Default 1 s.
	Every time.Duration

	// Missed is called when there were more events than are kept, and some are lost:
	// Hot tells how things are. Default nothing.
	Missed func()

	// Trouble is called when the store could not be asked. The next try makes up
	// for it. Default nothing.
	Trouble func(error)
}

// Watch calls tell for each event of a hot list, once and in order, until the context
// ends. Every watcher is told of every event, in whichever process it happened. It
// returns the context's error, or at once if the list makes no sense.
func Watch(ctx context.Context, store Store, list HotList, o WatchOptions, tell func(Event)) error {
	if err := list.Validate(); err != nil {
		return err
	}
	o.After = cmp.Or(o.After, Latest)
	if o.Every <= 0 {
		o.Every = time.Second
	}
	tick := time.NewTicker(o.Every)
	defer tick.Stop()
	for {
		news, err := store.Events(ctx, list, o.After)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			if o.Trouble != nil {
				o.Trouble(err)
			}
		default:
			if news.Missed && o.Missed != nil {
				o.Missed()
			}
			for _, event := range news.Events {
				tell(event)
			}
			o.After = news.Next
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
