package file

import (
	"bytes"
	"context"
	"fmt"

	"github.com/weirhq/weir/internal/repo"
	"github.com/weirhq/weir/internal/watch"
)

// settleTries is how often a document with errors is read before it is believed to be
// meant.
const settleTries = 3

// Watch implements repo.Repository.
func (r *Repository) Watch(ctx context.Context, changed func(repo.Version, error)) error {
	n := repo.Notifier{Changed: changed}
	return watch.Follow(ctx, r.path, watch.Options{Poll: r.options.Poll, PollOnly: r.options.PollOnly}, func() {
		if f := r.look(ctx); ctx.Err() == nil {
			n.Tell(f.version, f.trouble)
		}
	})
}

// errRestless is no verdict on a document: the next look may find it at rest.
var errRestless = fmt.Errorf("keeps changing; it is loaded after %v without a change", watch.Rest)

// settle waits until a document does not change any more: an editor may be in the
// middle of writing it, and half a document can be a good one with half the rules.
func (r *Repository) settle(ctx context.Context, d *document) (*document, error) {
	for tries := 1; ; tries++ {
		if err := r.pause(ctx); err != nil {
			return d, err
		}
		again, err := readDocument(r.path)
		if err == nil {
			err = r.acceptable(again)
		}
		same := again.digestOrNone() == d.digestOrNone()
		d = again
		switch {
		case same && (err == nil || tries >= settleTries):
			return d, err
		case tries == watch.MaxRests:
			return d, fmt.Errorf("rules: %s %w", r.path, errRestless)
		}
	}
}

// acceptable is why a document that somebody wrote by hand is not used. An empty file
// is rather an accident, such as a full disk, if there were rules before.
func (r *Repository) acceptable(d *document) error {
	if len(bytes.TrimSpace(d.source)) == 0 {
		if last := r.fallBack(nil).version; last != nil && len(last.Document.Set.Rules) > 0 {
			return fmt.Errorf("rules: %s is empty, so version %d stays in force; write \"rules: []\" if there should be none", r.path, last.Number)
		}
	}
	_, err := r.Usable(d.source)
	return err
}
