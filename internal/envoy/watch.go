package envoy

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	settleFor  = 50 * time.Millisecond // how long files must stay as they are
	settleMost = 40                    // looks, before it is left to the next poll
)

// errRestless is no verdict: the next look may find the files at rest.
var errRestless = fmt.Errorf("envoy: the files change all the time; they are used when they have not for %v", settleFor)

// Watch follows the directory until the context ends, which is its error. It calls
// changed with every configuration that comes into force, and with what keeps a later
// one from doing so: each trouble once, with the configuration that stays in force, and
// that one again, without an error, when the trouble is over. Calls are one after the
// other.
//
// Files that are replaced through symbolic links are seen, too, as Kubernetes and
// goruntime do it.
func (d *Dir) Watch(ctx context.Context, changed func(*Config, error)) error {
	s := newSpotter(d.path, d.options.PollOnly)
	defer s.close()
	poll := time.NewTicker(d.options.Poll)
	defer poll.Stop()
	told, trouble := d.Config(), ""
	for ctx.Err() == nil {
		// First, so that nothing can happen unseen after the look.
		s.aim()
		err := d.look(ctx)
		if ctx.Err() != nil {
			break
		}
		now, text := d.Config(), ""
		if err != nil {
			text = err.Error()
		}
		if now != told || text != trouble {
			changed(now, err)
		}
		told, trouble = now, text
		s.wait(ctx, poll.C)
	}
	return ctx.Err()
}

// look brings the files into force if they have changed and are at rest: an editor may
// be in the middle of writing one, and half a file can be a good one with half the
// limits.
func (d *Dir) look(ctx context.Context) error {
	_, sum, err := d.read()
	if err == nil && d.isKnown(sum) {
		return d.trouble(sum)
	}
	for range settleMost {
		if err := d.pause(ctx); err != nil {
			return err
		}
		files, again, readErr := d.read()
		if sameError(err, readErr) && again == sum {
			if readErr != nil {
				return readErr
			}
			return d.install(files, sum)
		}
		sum, err = again, readErr
	}
	return errRestless
}

// isKnown is whether there is nothing to find out about files.
func (d *Dir) isKnown(sum digest) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return sum == d.inForce || sum == d.rejected
}

// trouble is why known files are not in force.
func (d *Dir) trouble(sum digest) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if sum == d.inForce {
		d.rejected, d.why = digest{}, nil
	}
	return d.why
}

func sameError(a, b error) bool {
	if a == nil || b == nil {
		return a == b
	}
	return errors.Is(a, b) || a.Error() == b.Error()
}

// pause waits a moment.
func pause(ctx context.Context) error {
	timer := time.NewTimer(settleFor)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
