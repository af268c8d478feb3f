package counter

import (
	"cmp"
	"context"
	"time"
)

// WatchOptions configures Watch. The zero value is ready to use.
type WatchOptions struct {
	// After is the ID of the last known event. Default Latest: only new events are
	// reported.
	After int64

	// Every is the polling interval, and so the maximum delay of an event. Default 1 s.
	Every time.Duration

	// Missed is called if more events happened than are kept, so that some are lost.
	// Hot returns the current state. Default none.
	Missed func()

	// Trouble is called if the store is unavailable. The next successful poll reports
	// the events in between. Default none.
	Trouble func(error)
}

// Watch calls tell for each event of a hot list, once and in order, until the context
// ends. Every watcher gets every event, from all processes. Watch returns the context's
// error, or returns immediately if the list is invalid.
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
