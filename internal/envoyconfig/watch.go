package envoyconfig

import (
	"context"
	"fmt"

	"github.com/weirhq/weir/internal/watch"
)

// errRestless is no verdict: the next look may find the files at rest.
var errRestless = fmt.Errorf("envoy: the files keep changing; they are loaded after %v without a change", watch.Rest)

// Watch follows the directory until the context ends, which is its error. It calls
// changed with every configuration that comes into force, and with what keeps a later
// one from doing so: each trouble once, with the configuration that stays in force, and
// that one again, without an error, when the trouble is over. Calls are one after the
// other.
func (d *Dir) Watch(ctx context.Context, changed func(*Config, error)) error {
	told, trouble := d.Config(), ""
	return watch.Follow(ctx, d.path, watch.Options{Poll: d.options.Poll, PollOnly: d.options.PollOnly}, func() {
		err := d.look(ctx)
		if ctx.Err() != nil {
			return
		}
		now, text := d.Config(), ""
		if err != nil {
			text = err.Error()
		}
		if now != told || text != trouble {
			changed(now, err)
		}
		told, trouble = now, text
	})
}

// look brings the files into force if they have changed and are at rest.
func (d *Dir) look(ctx context.Context) error {
	_, sum, err := d.read()
	if err == nil {
		if known, why := d.known(sum); known {
			return why
		}
	}
	for range watch.MaxRests {
		if err := d.pause(ctx); err != nil {
			return err
		}
		files, again, readErr := d.read()
		if fmt.Sprint(err) == fmt.Sprint(readErr) && again == sum {
			if readErr != nil {
				return readErr
			}
			return d.install(files, sum)
		}
		sum, err = again, readErr
	}
	return errRestless
}

// known is whether there is nothing to find out about files, and why they are not in force.
func (d *Dir) known(sum digest) (known bool, why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if sum == d.inForce {
		d.rejected, d.why = digest{}, nil
	}
	return sum == d.inForce || sum == d.rejected, d.why
}
