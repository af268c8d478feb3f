// Package archive keeps frames, finer ones for a short time and coarser ones for long:
// in memory, or in Redis, where the instances of weir add to one archive.
//
// # Roll-up
//
// Frames are added to the finest level. A coarser slot is the sum of the finer slots
// in it, and nothing else: whoever rolls up, and however often, comes to the same
// result. So the levels agree at every moment, also when several instances roll up at
// once, when one is killed in between, and when something arrives late.
//
// In Redis, coarser slots are marked, in the same script, when a part is added below
// them. A marked slot is read by adding up what is below it; when it has ended, rolling
// up writes that sum and removes the mark, in one script, unless the mark has changed
// meanwhile.
//
// # Notes
//
// Besides, an archive keeps a few short texts that instances share until a time: [Note].
package archive

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/stats/frame"
)

// Kind is what frames are about. Each kind has levels of its own.
type Kind uint8

const (
	Series Kind = iota // counts and latencies: a second, minute, hour and day
	Rules              // details of rules: 10 seconds, 5 minutes, an hour
	Top                // rankings of keys: 10 seconds, 5 minutes, an hour
	Kinds              // how many there are
)

func (k Kind) String() string { return [...]string{"series", "rules", "top"}[k] }

// Level is slots of one length, aligned to the Unix epoch: days are those of UTC.
type Level struct {
	Step int64 // seconds
	Keep int64 // seconds for which a slot is kept after it began
}

// Start returns when the slot began that an instant is in.
func (l Level) Start(unix int64) int64 {
	start := unix - unix%l.Step
	if start > unix { // before the epoch
		start -= l.Step
	}
	return start
}

// Keep says for how long slots of each length are kept, in the series. A zero is the
// default.
type Keep struct {
	Second time.Duration // default an hour
	Minute time.Duration // default a day
	Hour   time.Duration // default 30 days
	Day    time.Duration // default 366 days
}

const (
	minute = 60
	hour   = 60 * minute
	day    = 24 * hour
)

// ladders are the levels of each kind, from the finest on. Every length is a multiple
// of the one before it.
type ladders [Kinds][]Level

// ladders returns the levels, if each is kept long enough to make the next one.
func (k Keep) ladders() (ladders, error) {
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
	}
	steps := [...]int64{1, minute, hour, day}
	series := make([]Level, len(keep))
	for i, l := range keep {
		seconds := int64(l.given / time.Second)
		switch {
		case l.given == 0:
			seconds = l.fall
		case seconds < l.least:
			return ladders{}, fmt.Errorf("archive: Keep.%s is %v; keep at least %v, so that the next level can be made of it", l.name, l.given, time.Duration(l.least)*time.Second)
		case seconds > 3660*day:
			return ladders{}, fmt.Errorf("archive: Keep.%s is %v; ten years are the most", l.name, l.given)
		}
		series[i] = Level{steps[i], seconds}
	}
	return ladders{
		Series: series,
		Rules:  {{10, 15 * minute}, {5 * minute, 13 * hour}, {hour, 8 * day}},
		Top:    {{10, 10 * minute}, {5 * minute, 2 * hour}, {hour, 25 * hour}},
	}, nil
}

// Part is what one instance adds to a slot of the finest level.
type Part struct {
	Kind  Kind
	Start int64  // of the slot, in Unix seconds
	ID    string // tells it from all others, so that adding it twice adds it once
	Frame []byte // as frame.Frame.Append writes it
}

// Slot is a frame of a level.
type Slot struct {
	Start int64
	Frame *frame.Frame
}

// MaxSlots is how many slots one Read may span: the day of minutes, the hour of
// seconds and more.
const MaxSlots = 10_000

// span makes sure that a range can be read, and aligns it.
func span(l Level, from, to int64) (int64, int64, error) {
	from, to = l.Start(from), l.Start(to+l.Step-1)
	if slots := (to - from) / l.Step; slots > MaxSlots {
		return 0, 0, fmt.Errorf("archive: %d slots are too many at once; read at most %d, or a coarser level", slots, MaxSlots)
	}
	return from, to, nil
}
