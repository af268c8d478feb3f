// Package archive stores the traffic of time ranges as frames: fine ones for a short time,
// coarse ones for a long time. [Memory] keeps them in the process. weir itself can also keep
// them in Redis, where its instances share one archive; both pass the same test suite.
//
// # Frames
//
// A [Frame] can be merged: those of two instances, or of sixty seconds, merge into one. The
// result is the same as if one instance had counted everything in one frame. Counts add up
// exactly. All histograms have the same slots, so a percentile of merged frames is the
// percentile of all requests, not an average of percentiles. Rankings of keys include the
// error of their counts. The number of names in a frame is bounded. An encoded frame has a
// few bytes per rule.
//
// # Roll-up
//
// Frames are added to the finest level. A coarser slot is the sum of the finer slots in
// it, so every roll-up gives the same result. The levels always agree, even if several
// instances roll up concurrently, if one is killed in between, or if data arrives late.
//
// In Redis, the script that adds a part also marks the coarser slots that contain it.
// To read a marked slot, the archive adds up the finer slots in it. When the slot has
// ended, RollUp writes the sum and removes the mark in one script, unless the mark has
// changed meanwhile.
//
// # Notes
//
// An archive also keeps a few short texts that instances share until a given time:
// [Note].
package archive

import (
	"context"
	"fmt"
	"time"

	"github.com/weirhq/weir/internal/notation"
)

// Store is an archive. It is safe for concurrent use.
type Store interface {
	// Levels returns the levels of a kind, finest first.
	Levels(Kind) []Level

	// Add adds parts, each once. After an error the same parts are added again.
	Add(context.Context, []Part) error

	// Read returns the slots of a level that begin in a range of seconds, in order.
	// Slots without data are omitted. The caller owns the frames.
	Read(ctx context.Context, kind Kind, level int, from, to int64) ([]Slot, error)

	// RollUp writes the coarser slots. Any number of instances may call it, at any
	// time.
	RollUp(context.Context, time.Time) error

	// Lag returns how long after a second its slot is complete.
	Lag() time.Duration

	// Lead reports whether this instance is the leader for the given time, for work
	// that only one instance should do.
	Lead(ctx context.Context, what string, d time.Duration) (bool, error)

	// SetNote stores a note until its time, for all instances, and replaces one with
	// the same id. A note without text, or whose time has passed, ends the existing
	// one.
	SetNote(ctx context.Context, kind string, n Note, now time.Time) error

	// OfferNote stores a note as SetNote does, unless the existing note with that id is
	// not the expected one: then another instance has changed it, and that note stays.
	OfferNote(ctx context.Context, kind string, n, was Note, now time.Time) error

	// Notes returns the notes of a kind whose time has not passed, ordered by id,
	// including ended ones.
	Notes(ctx context.Context, kind string, now time.Time) ([]Note, error)
}

// Kind is the kind of data in frames. Each kind has its own levels.
type Kind uint8

const (
	Series Kind = iota // counts and latencies: a second, minute, hour and day
	Rules              // details of rules: 10 seconds, 5 minutes, an hour
	Top                // rankings of keys: 10 seconds, 5 minutes, an hour
	Spend              // what requests cost in money: a minute, an hour, a day
	Kinds              // number of kinds
)

func (k Kind) String() string { return [...]string{"series", "rules", "top", "spend"}[k] }

// Level consists of slots of one length, aligned to the Unix epoch, so that days begin
// at midnight UTC.
type Level struct {
	Step int64 // seconds
	Keep int64 // how many seconds after its start a slot is kept
}

// Start returns the start of the slot that contains an instant.
func (l Level) Start(unix int64) int64 {
	start := unix - unix%l.Step
	if start > unix { // before the epoch
		start -= l.Step
	}
	return start
}

// Keep configures how long slots of each length are kept, in the series. Zero selects
// the default.
type Keep struct {
	Second time.Duration // default an hour
	Minute time.Duration // default a day
	Hour   time.Duration // default 30 days
	Day    time.Duration // default 366 days

	// Spend is how long the days of what requests cost in money are kept. Default 90 days.
	Spend time.Duration
}

const (
	minute = 60
	hour   = 60 * minute
	day    = 24 * hour
)

// Levels returns the levels of each kind, finest first. It returns an error if a level
// is not kept long enough to be rolled up. Every length is a multiple of the one before
// it.
func (k Keep) Levels() (all [Kinds][]Level, err error) {
	keep := [...]struct {
		name  string
		given time.Duration
		fall  int64
		least int64
	}{
		{"Second", k.Second, hour, 10 * minute},
		{"Minute", k.Minute, day, 2 * hour},
		{"Hour", k.Hour, 30 * day, 2 * day},
		{"Day", k.Day, 366 * day, day},
		{"Spend", k.Spend, 90 * day, day},
	}
	steps := [...]int64{1, minute, hour, day, day}
	series := make([]Level, len(keep))
	for i, l := range keep {
		seconds := int64(l.given / time.Second)
		switch {
		case l.given == 0:
			seconds = l.fall
		case seconds < l.least:
			return all, fmt.Errorf("archive: Keep.%s is %v; keep at least %v, so that the next level can be computed from it", l.name, l.given, time.Duration(l.least)*time.Second)
		case seconds > 3660*day:
			return all, fmt.Errorf("archive: Keep.%s is %v; the maximum is ten years", l.name, l.given)
		}
		series[i] = Level{steps[i], seconds}
	}
	return [...][]Level{
		Series: series[:4],
		Spend:  {{minute, 2 * hour}, {hour, 3 * day}, series[4]},
		Rules:  {{10, 15 * minute}, {5 * minute, 13 * hour}, {hour, 8 * day}},
		Top:    {{10, 10 * minute}, {5 * minute, 2 * hour}, {hour, 25 * hour}},
	}, nil
}

// ParseKeep parses the notation of the configuration:
// seconds=1h,minutes=1d,hours=30d,days=366d. Levels that are omitted have their
// default.
func ParseKeep(text string) (Keep, error) {
	var k Keep
	all, err := notation.ParseSettings(text)
	if err != nil || len(all) > 1 {
		return k, fmt.Errorf("archive: %q cannot be read; write it as seconds=1h,minutes=1d,hours=30d,days=366d", text)
	}
	fields := map[string]*time.Duration{"seconds": &k.Second, "minutes": &k.Minute, "hours": &k.Hour, "days": &k.Day, "spend": &k.Spend}
	for _, s := range all {
		for _, o := range append(s.Options, notation.Option{Name: s.Name, Value: s.Value}) {
			field := fields[o.Name]
			if field == nil {
				return k, fmt.Errorf("archive: unknown level %q; use seconds, minutes, hours, days, spend", o.Name)
			}
			if *field != 0 {
				return k, fmt.Errorf("archive: %s is given twice; write it once", o.Name)
			}
			if *field, err = notation.ParseDuration(o.Value); err != nil || *field <= 0 {
				return k, fmt.Errorf("archive: %s: %q is not a duration; write it as 90m, 2h or 30d", o.Name, o.Value)
			}
		}
	}
	_, err = k.Levels()
	return k, err
}

// Part is the data that one instance adds to a slot of the finest level.
type Part struct {
	Kind  Kind
	Start int64  // start of the slot in Unix seconds
	ID    string // unique, so that a part that is sent twice is added once
	Frame []byte // encoded by Frame.Append

	// Revision, if not 0, is that of a part that is sent again and again while its slot
	// is open, each time with everything it has so far: the highest revision of an ID
	// counts, whatever the order in which they arrive.
	Revision int64
}

// Slot is one slot of a level.
type Slot struct {
	Start int64
	Frame *Frame
}

// MaxSlots is the maximum number of slots in one Read. It is enough for a day of
// minutes or an hour of seconds.
const MaxSlots = 10_000

// Span aligns a range to the slots of the level, and returns an error if the range has
// more than MaxSlots slots.
func (l Level) Span(from, to int64) (int64, int64, error) {
	from, to = l.Start(from), l.Start(to+l.Step-1)
	if slots := (to - from) / l.Step; slots > MaxSlots {
		return 0, 0, fmt.Errorf("archive: %d slots are too many at once; read at most %d, or a coarser level", slots, MaxSlots)
	}
	return from, to, nil
}
