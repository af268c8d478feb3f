package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/stats/archive"
)

// learning shares what the engine has learned of the answers of language models with other instances, and with this one after
// a restart, by notes in the archive of statistics. There is one for each rule and model.
type learning struct {
	engine  *engine.Engine
	archive archive.Store
	clock   func() time.Time
	logger  *slog.Logger
	failing bool // the last exchange had an error
}

const (
	learnedNotes = "answers"          // the kind of notes
	learnedKept  = 7 * 24 * time.Hour // without further answers
)

// learnEvery is how often instances tell each other what they have learned.
var learnEvery = 20 * time.Second

// openLearning begins when there are rules, and ends before the statistics are saved.
func (a *App) openLearning(_, background context.Context) error {
	if a.recorder == nil {
		return nil
	}
	l := &learning{engine: a.engine, archive: a.recorder.Archive(), clock: time.Now, logger: a.options.Logger}
	a.background.Go(func() {
		every := time.Tick(learnEvery)
		for {
			l.share(background)
			select {
			case <-every:
			case <-background.Done():
				return
			}
		}
	})
	a.later(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		l.share(ctx)
	})
	return nil
}

// share exchanges, and logs the first error of several exchanges that have one.
func (l *learning) share(ctx context.Context) {
	err := l.exchange(ctx)
	if err != nil && !l.failing && ctx.Err() == nil {
		l.logger.Warn("what is learned of answers is not shared completely", "error", err)
	}
	l.failing = err != nil
}

// exchange takes what others have learned, and then offers what is known here and they do not have. If another instance
// changes a note at the same time, its values and those of this one come together the next time. A note that cannot be read, or
// for which there is no room, does not keep others from being shared; the error is the first.
func (l *learning) exchange(ctx context.Context) (first error) {
	notes, err := l.archive.Notes(ctx, learnedNotes, l.clock())
	if err != nil {
		return err
	}
	there := map[string]archive.Note{}
	for _, n := range notes {
		there[n.ID] = n
		id, model, _ := strings.Cut(n.ID, " ")
		err := l.engine.Learn(engine.Learned{Rule: id, Model: model, Data: n.Text}) // an instance of another version may have written it
		first = cmp.Or(first, err)
	}
	offered, full := 0, false
	for one := range l.engine.Learned() {
		if offered++; offered > archive.MaxNotes {
			break // there is no room for what is known less
		}
		n := archive.Note{ID: one.Rule + " " + one.Model, Text: one.Data, Until: l.clock().Add(learnedKept)}
		was, known := there[n.ID]
		if full && !known || bytes.Equal(was.Text, n.Text) && n.Until.Sub(was.Until) < learnedKept/2 {
			continue
		}
		err := l.archive.OfferNote(ctx, learnedNotes, n, was, l.clock())
		if full = full || errors.Is(err, archive.ErrNoRoom); err != nil && !errors.Is(err, archive.ErrNoRoom) {
			return err
		}
		first = cmp.Or(first, err)
	}
	return first
}
