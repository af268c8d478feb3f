package file

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/weirhq/weir/rule"
)

const (
	settleFor   = 50 * time.Millisecond // how long a document must stay as it is
	settleTries = 3                     // before one with errors is believed to be meant
	settleMost  = 40                    // before it is given up
)

// errRestless is no verdict on a document: the next look may find it at rest.
var errRestless = fmt.Errorf("changes all the time; it is used when it has not for %v", settleFor)

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
		case tries == settleMost:
			return d, fmt.Errorf("rules: %s %w", r.path, errRestless)
		}
	}
}

// pause waits a moment.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(settleFor):
		return nil
	}
}

// acceptable is why a document that somebody wrote by hand is not used. An empty file
// is rather an accident, such as a full disk, if there were rules before.
func (r *Repository) acceptable(d *document) error {
	if len(bytes.TrimSpace(d.source)) == 0 {
		if last := r.fallBack(nil).version; last != nil {
			if set, _ := rule.Parse(r.name, last.Source); set != nil && len(set.Rules) > 0 {
				return fmt.Errorf("rules: %s is empty, so version %d stays in force; write \"rules: []\" if there should be none", r.path, last.Number)
			}
		}
	}
	return r.judge(d.digest, d.source)
}
