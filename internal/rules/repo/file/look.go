package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/rules/ruleedit"
	"github.com/weirhq/weir/internal/watch"
)

// finding is what a look at the document finds.
type finding struct {
	version    *repo.Version // in force; nil if none is, which is trouble
	trouble    error         // why the document is not it, or not recorded
	unrecorded bool
}

// look finds out which version is in force. While the document does not change, it
// takes no lock.
func (r *Repository) look(ctx context.Context) finding {
	if f, known := r.known(readDocument(r.path)); known {
		return f
	}
	unlock, err := r.lock(ctx)
	if err != nil {
		return r.fallBack(err)
	}
	defer unlock()
	return r.reconcile(ctx)
}

// reconcile makes a version of a document that was changed by hand. It needs the lock.
func (r *Repository) reconcile(ctx context.Context) finding {
	d, err := readDocument(r.path)
	if folder, ok := r.archive.(*folder); ok && d != nil {
		if err := folder.conclude(d.digest); err != nil {
			return r.fallBack(err)
		}
	}
	if f, known := r.known(d, err); known {
		return f
	}
	d, err = r.settle(ctx, d)
	if ctx.Err() != nil {
		return r.fallBack(ctx.Err())
	}
	if err != nil {
		if !errors.Is(err, errRestless) {
			r.reject(&rejection{d.digestOrNone(), err})
		}
		return r.fallBack(err)
	}
	r.reject(nil)
	if v := r.recorded(d); v != nil {
		return finding{version: v} // it was only being saved again
	}
	return r.record(d)
}

// known is what is found at once: a document that is recorded, or one that was rejected before.
func (r *Repository) known(d *document, err error) (finding, bool) {
	if err == nil {
		if v := r.recorded(d); v != nil {
			r.reject(nil)
			return finding{version: v}, true
		}
	}
	why := r.rejection(d, err)
	if why == nil {
		return finding{}, false
	}
	return r.fallBack(why), true
}

// recorded is the version of the document, if it is the latest that is kept and can
// be used.
func (r *Repository) recorded(d *document) *repo.Version {
	e, _ := r.latest()
	if e == nil || e.Digest != d.digest {
		return nil
	}
	var err error
	if e.Document, err = r.Usable(d.source); err != nil {
		return nil
	}
	e.Source = d.source
	return &e.Version
}

// latest is the head of the latest entry that is not damaged. Numbers are not used
// again, so the highest is returned, too.
func (r *Repository) latest() (e *entry, highest int64) {
	numbers, err := r.archive.numbers()
	if err != nil || len(numbers) == 0 {
		return nil, 0
	}
	for _, n := range numbers {
		if head, err := r.archive.head(n); err == nil {
			return &head, numbers[0]
		}
	}
	return nil, numbers[0]
}

// record makes the document a version.
func (r *Repository) record(d *document) finding {
	read, err := r.Usable(d.source)
	if err != nil {
		return r.fallBack(err)
	}
	last, highest := r.latest()
	var old *ruleedit.Document
	if last != nil {
		if e, err := r.archive.load(last.Number); err == nil {
			old, _ = r.Read(e.Source)
		}
	}
	v := repo.Version{Number: highest + 1, Time: d.time, Author: "file", Summary: repo.Summarize(old, read), Source: d.source}
	err = r.archive.save(entry{v, d.digest}, d.mode)
	v.Document = read
	if err != nil {
		// It is in force all the same, and recorded when that can be done again.
		return finding{&v, fmt.Errorf("rules: version %d is in force but %w: %w", v.Number, repo.ErrNotRecorded, err), true}
	}
	return finding{version: &v}
}

// fallBack returns the latest version that can be used, when the document cannot.
func (r *Repository) fallBack(why error) finding {
	numbers, err := r.archive.numbers()
	if err != nil {
		return finding{trouble: errors.Join(why, err)}
	}
	for _, n := range numbers {
		if e, err := r.archive.load(n); err == nil {
			if e.Document, err = r.Usable(e.Source); err == nil {
				return finding{version: &e.Version, trouble: why}
			}
		}
	}
	return finding{trouble: why}
}

func (d *document) digestOrNone() string {
	if d == nil {
		return ""
	}
	return d.digest
}

// rejection is why the document was not used when it was looked at before. It is not
// looked at again until it is another, or cannot be read for another reason.
func (r *Repository) rejection(d *document, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rejected == nil || r.rejected.digest != d.digestOrNone() || err != nil && err.Error() != r.rejected.why.Error() {
		return nil
	}
	return r.rejected.why
}

func (r *Repository) reject(why *rejection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rejected = why
}

// settleTries is how often a document with errors is read before it is believed to be
// meant.
const settleTries = 3

// Watch implements repo.Repository.
func (r *Repository) Watch(ctx context.Context, changed func(repo.Version, error)) error {
	n := repo.Notifier{Changed: changed}
	return watch.Follow(ctx, r.path, r.options.watch, func() {
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
