package stats

import (
	"context"

	"github.com/weirhq/weir/stats/archive"
)

// SetNote keeps a note in the archive until its time, for all instances, instead of one
// with the same id. Without a text, or if its time has passed, it ends the one that is
// there.
func (r *Recorder) SetNote(ctx context.Context, kind string, n archive.Note) error {
	return r.archive.SetNote(ctx, kind, n, r.options.Clock())
}

// OfferNote is SetNote unless there is a note with that id which is not the one that was
// there before.
func (r *Recorder) OfferNote(ctx context.Context, kind string, n, was archive.Note) error {
	return r.archive.OfferNote(ctx, kind, n, was, r.options.Clock())
}

// Notes returns those of a kind whose time has not passed, by id; also those that were
// ended.
func (r *Recorder) Notes(ctx context.Context, kind string) ([]archive.Note, error) {
	return r.archive.Notes(ctx, kind, r.options.Clock())
}
