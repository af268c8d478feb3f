package stats

import (
	"context"
	"errors"
	"time"

	"github.com/weirhq/weir/stats/archive"
)

// ownKept is for how long an instance remembers what it has counted itself, beside the
// archive that it shares with others: enough for somebody who looks while that is
// unavailable.
var ownKept = archive.Keep{Second: 10 * time.Minute, Minute: 2 * time.Hour, Hour: 48 * time.Hour, Day: 24 * time.Hour}

// keepOwn keeps a part here, too.
func (r *Recorder) keepOwn(p *archive.Part) {
	if r.own == nil {
		return
	}
	if err := r.own.Add(context.Background(), []archive.Part{*p}); err != nil {
		panic(err) // the frame was written a line before
	}
}

// ask puts a question to the archive. While that is unavailable, the question is put to
// what this instance has counted itself. A question may be put twice, so it has to begin
// from nothing each time.
func (r *Recorder) ask(ctx context.Context, question func(archive.Store) error) (own bool, err error) {
	if r.own == nil {
		return false, question(r.archive)
	}
	if r.queue.health().Err != nil {
		return true, question(r.own) // nobody has to wait for what is known
	}
	err = question(r.archive)
	var wrong *QueryError
	if err == nil || errors.As(err, &wrong) || ctx.Err() != nil {
		return false, err
	}
	return true, question(r.own)
}
