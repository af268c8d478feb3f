package archive

import (
	"context"
	_ "embed"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

//go:embed notes.lua
var notesText string

var notesScript = rueidis.NewLuaScript(notesText)

// SetNote keeps a note until its time, for all instances, instead of one with the same
// id. Without a text, or if its time has passed, it ends the one that is there.
func (a *Redis) SetNote(ctx context.Context, kind string, n Note, now time.Time) error {
	return a.setNote(ctx, kind, n, now)
}

// OfferNote is SetNote unless there is a note with that id which is not the one that was
// there before: then somebody else has said something meanwhile, and that counts.
func (a *Redis) OfferNote(ctx context.Context, kind string, n, was Note, now time.Time) error {
	return a.setNote(ctx, kind, n, now, was.value())
}

func (a *Redis) setNote(ctx context.Context, kind string, n Note, now time.Time, was ...string) error {
	n, err := n.tidy(kind, now)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	args := append([]string{n.ID, micros(n.Until), string(n.Text)}, was...)
	answer, err := a.askNotes(ctx, kind, now, args...)
	if err != nil {
		return err
	}
	if done, err := answer.AsInt64(); err != nil {
		return explain(err)
	} else if done < 0 {
		return ErrNoRoom
	}
	return nil
}

// Notes returns those of a kind whose time has not passed, by id; also those that were
// ended. What cannot be read is left out, and removed.
func (a *Redis) Notes(ctx context.Context, kind string, now time.Time) ([]Note, error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	answer, err := a.askNotes(ctx, kind, now)
	if err != nil {
		return nil, err
	}
	pairs, err := answer.AsStrSlice()
	if err != nil {
		return nil, explain(err)
	}
	var all []Note
	for ; len(pairs) >= 2; pairs = pairs[2:] {
		if n, ok := noteOf(pairs[0], pairs[1]); ok && n.alive(now) {
			all = append(all, n)
		}
	}
	sortNotes(all)
	return all, nil
}

// askNotes runs the script, which bounds what Redis sends, too.
func (a *Redis) askNotes(ctx context.Context, kind string, now time.Time, args ...string) (rueidis.RedisResult, error) {
	client, err := a.client()
	if err != nil {
		return rueidis.RedisResult{}, err
	}
	bounds := []string{micros(now), micros(now.Add(2 * MaxNoteTime)), strconv.Itoa(MaxNotes), strconv.Itoa(MaxNoteID), strconv.Itoa(MaxNoteText)}
	return notesScript.Exec(ctx, client, []string{a.prefix + "notes:" + kind}, append(bounds, args...)), nil
}

func micros(t time.Time) string { return strconv.FormatInt(t.UnixMicro(), 10) }
