package archiveredis

import (
	"bytes"
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/stats/archive"
)

// SetNote implements archive.Store.
func (a *Store) SetNote(ctx context.Context, kind string, n archive.Note, now time.Time) error {
	return a.setNote(ctx, kind, n, now)
}

// OfferNote implements archive.Store.
func (a *Store) OfferNote(ctx context.Context, kind string, n, was archive.Note, now time.Time) error {
	return a.setNote(ctx, kind, n, now, valueOf(&was))
}

func (a *Store) setNote(ctx context.Context, kind string, n archive.Note, now time.Time, was ...string) error {
	n, err := n.Tidy(kind, now)
	if err != nil {
		return err
	}
	args := append([]string{n.ID, micros(n.Until), string(n.Text)}, was...)
	done, err := askNotes(ctx, a, rueidis.RedisResult.AsInt64, kind, now, args...)
	if err == nil && done < 0 {
		return archive.ErrNoRoom
	}
	return err
}

// Notes implements archive.Store. It omits and removes notes that cannot be read.
func (a *Store) Notes(ctx context.Context, kind string, now time.Time) ([]archive.Note, error) {
	pairs, err := askNotes(ctx, a, rueidis.RedisResult.AsStrSlice, kind, now)
	var all []archive.Note
	for ; len(pairs) >= 2; pairs = pairs[2:] {
		if n, ok := noteOf(pairs[0], pairs[1]); ok && n.Alive(now) {
			all = append(all, n)
		}
	}
	archive.SortNotes(all)
	return all, err
}

// askNotes runs the script, which bounds what Redis sends, too.
func askNotes[T any](ctx context.Context, a *Store, as func(rueidis.RedisResult) (T, error), kind string, now time.Time, args ...string) (answer T, err error) {
	bounds := []string{micros(now), micros(now.Add(2 * archive.MaxNoteTime)), strconv.Itoa(archive.MaxNotes), strconv.Itoa(archive.MaxNoteID), strconv.Itoa(archive.MaxNoteText)}
	err = a.conn.Do(ctx, func(ctx context.Context, client rueidis.Client) error {
		answer, err = as(notesScript.Exec(ctx, client, []string{a.prefix + "notes:" + kind}, append(bounds, args...)))
		if err != nil {
			return a.explain(err)
		}
		return nil
	})
	return answer, err
}

func micros(t time.Time) string { return strconv.FormatInt(t.UnixMicro(), 10) }

// valueOf is a note as Redis has it: when it ends, in Unix microseconds, a space, the text.
func valueOf(n *archive.Note) string {
	return micros(n.Until) + " " + string(n.Text)
}

// noteOf reads such a value.
func noteOf(id, value string) (archive.Note, bool) {
	until, text, ok := bytes.Cut([]byte(value), []byte(" "))
	micros, err := strconv.ParseInt(string(until), 10, 64)
	if !ok || err != nil || id == "" || len(id) > archive.MaxNoteID || len(text) > archive.MaxNoteText {
		return archive.Note{}, false
	}
	return archive.Note{ID: id, Text: text, Until: time.UnixMicro(micros).UTC()}, true
}
