// Package archiveredis keeps the archive of statistics in Redis, where all instances of weir
// share it.
package archiveredis

import (
	"cmp"
	"context"
	"crypto/rand"
	"embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/redislink"
	"github.com/weirhq/weir/stats/archive"
)

// Defaults of Options.
const (
	DefaultPrefix  = "weir:"
	DefaultTimeout = time.Second
)

// lag is how long after a second all instances have sent what they counted in it.
const lag = 2 * time.Second

// slack is for how long a slot is kept beyond what was promised: as long as the one
// above it is being made.
const slack = 10 * 60

// Options configures an archive. The zero value is ready to use.
type Options struct {
	// Keep configures how long each level of the series is kept.
	Keep archive.Keep

	// Prefix is the prefix of every key. Default DefaultPrefix.
	Prefix string

	// Timeout is the maximum duration of a call. Default DefaultTimeout.
	Timeout time.Duration
}

// Store keeps frames in Redis, where all instances share them. The instances merge
// frames; Redis only stores bytes. It is safe for concurrent use.
type Store struct {
	conn   redislink.Conn
	kept   [archive.Kinds][]archive.Level
	prefix string
	self   string // tells this instance from others
	rolled rolled
}

//go:embed script
var scripts embed.FS

var (
	addScript   = redislink.Script(scripts, "add")
	rollScript  = redislink.Script(scripts, "roll")
	notesScript = redislink.Script(scripts, "notes")
)

// Open returns an archive for a Redis that may not be available yet: a single server, Sentinel or a
// cluster, where all keys are on one slot. The function client returns a client, which the caller closes, or an error while
// there is none. Do not share it with a store of limits, because checks would wait behind long answers.
func Open(client func() (rueidis.Client, error), o Options) (*Store, error) {
	kept, err := o.Keep.Levels()
	if err != nil {
		return nil, err
	}
	conn := redislink.Conn{Name: "archive", Client: client, Timeout: o.Timeout}
	if err := conn.Check(DefaultTimeout); err != nil {
		return nil, err
	}
	return &Store{
		conn: conn, kept: kept,
		prefix: cmp.Or(o.Prefix, DefaultPrefix) + "{stats}:", self: rand.Text(), rolled: rolled{at: map[string]int64{}},
	}, nil
}

// Levels implements archive.Store.
func (a *Store) Levels(kind archive.Kind) []archive.Level { return a.kept[kind] }

// Lag implements archive.Store.
func (a *Store) Lag() time.Duration { return lag }

func (a *Store) slotKey(kind archive.Kind, step, start int64) string {
	return fmt.Sprintf("%s%s:%d:%d", a.prefix, kind, step, start)
}

func (a *Store) marksKey(kind archive.Kind, step int64) string {
	return fmt.Sprintf("%s%s:%d:marks", a.prefix, kind, step)
}

func seconds(n int64) string { return strconv.FormatInt(n, 10) }

// Add adds parts, each once; after an error, all can be sent again.
func (a *Store) Add(ctx context.Context, parts []archive.Part) error {
	return a.conn.Do(ctx, func(ctx context.Context, client rueidis.Client) error {
		for i := range parts {
			p := &parts[i]
			levels := a.kept[p.Kind]
			start := levels[0].Start(p.Start)
			slot := a.slotKey(p.Kind, levels[0].Step, start)
			keys := []string{slot, a.prefix + "counter", slot + ":revisions"}
			args := []string{p.ID, rueidis.BinaryString(p.Frame), seconds(levels[0].Keep + slack), seconds(levels[len(levels)-1].Keep + slack), seconds(p.Revision)}
			for _, coarser := range levels[1:] {
				keys = append(keys, a.marksKey(p.Kind, coarser.Step))
				args = append(args, seconds(coarser.Start(start)))
			}
			if err := addScript.Exec(ctx, client, keys, args).Error(); err != nil {
				return a.explain(err)
			}
		}
		return nil
	})
}

// Read implements archive.Store. It computes slots that are not rolled up yet.
func (a *Store) Read(ctx context.Context, kind archive.Kind, level int, from, to int64) ([]archive.Slot, error) {
	from, to, err := a.kept[kind][level].Span(from, to)
	if err != nil {
		return nil, err
	}
	var slots []archive.Slot
	err = a.conn.Do(ctx, func(ctx context.Context, client rueidis.Client) error {
		slots, err = a.read(ctx, client, kind, level, from, to)
		return err
	})
	return slots, err
}

func (a *Store) read(ctx context.Context, client rueidis.Client, kind archive.Kind, level int, from, to int64) ([]archive.Slot, error) {
	var marks map[int64]string
	decode := decodeParts
	if level > 0 {
		var err error
		decode = decodeSum
		if marks, err = a.marks(ctx, client, kind, level); err != nil {
			return nil, err
		}
	}
	step := a.kept[kind][level].Step
	var commands rueidis.Commands
	for start := from; start < to; start += step {
		command, key := client.B(), a.slotKey(kind, step, start)
		if level > 0 {
			commands = append(commands, command.Get().Key(key).Build())
		} else {
			commands = append(commands, command.Hvals().Key(key).Build())
		}
	}
	var slots []archive.Slot
	for i, answer := range client.DoMulti(ctx, commands...) {
		start := from + int64(i)*step
		f, err := decode(answer)
		if err == nil && marks[start] != "" {
			f, err = a.sum(ctx, client, kind, level, start, f)
		}
		if err != nil {
			return nil, a.explain(err)
		}
		if f != nil {
			slots = append(slots, archive.Slot{Start: start, Frame: f})
		}
	}
	return slots, nil
}

// decodeSum reads what was rolled up. It is nil if there is nothing.
func decodeSum(answer rueidis.RedisResult) (*archive.Frame, error) {
	blob, err := answer.AsBytes()
	if rueidis.IsRedisNil(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return archive.Decode(blob)
}

// decodeParts adds up what instances have added to a slot. It is nil if that is nothing.
func decodeParts(answer rueidis.RedisResult) (*archive.Frame, error) {
	parts, err := answer.AsStrSlice()
	if err != nil || len(parts) == 0 {
		return nil, err
	}
	sum := &archive.Frame{}
	for _, part := range parts {
		f, err := archive.Decode([]byte(part))
		if err != nil {
			return nil, err
		}
		sum.Merge(f)
	}
	sum.Trim()
	return sum, nil
}

// sum adds up what is below a slot. It is nil if that is nothing. What was written for
// the slot before is returned instead if it is more: slots only grow, so something below
// must be gone, because it was kept no longer or Redis had to make room.
func (a *Store) sum(ctx context.Context, client rueidis.Client, kind archive.Kind, level int, start int64, before *archive.Frame) (*archive.Frame, error) {
	below, err := a.read(ctx, client, kind, level-1, start, start+a.kept[kind][level].Step)
	if err != nil || len(below) == 0 {
		return before, err
	}
	f := &archive.Frame{}
	for _, s := range below {
		f.Merge(s.Frame)
	}
	f.Trim()
	if before != nil && before.Weight() > f.Weight() {
		f = before
	}
	return f, nil
}

// marks returns which slots of a level have changed below since they were rolled up.
func (a *Store) marks(ctx context.Context, client rueidis.Client, kind archive.Kind, level int) (map[int64]string, error) {
	all, err := client.Do(ctx, client.B().Hgetall().Key(a.marksKey(kind, a.kept[kind][level].Step)).Build()).AsStrMap()
	if err != nil {
		return nil, a.explain(err)
	}
	marks := make(map[int64]string, len(all))
	for text, mark := range all {
		start, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("archive: something else writes to %s; choose another prefix", a.marksKey(kind, a.kept[kind][level].Step))
		}
		marks[start] = mark
	}
	return marks, nil
}

// Lead reports whether this instance is the leader for the given time, for work that
// only one instance should do. The leader stays the leader as long as it calls Lead in
// time.
func (a *Store) Lead(ctx context.Context, what string, d time.Duration) (bool, error) {
	key, leads := a.prefix+"lead:"+what, false
	err := a.conn.Do(ctx, func(ctx context.Context, client rueidis.Client) error {
		err := client.Do(ctx, client.B().Set().Key(key).Value(a.self).Nx().Px(d).Build()).Error()
		if leads = err == nil; leads {
			return nil
		}
		if !rueidis.IsRedisNil(err) {
			return a.explain(err)
		}
		who, err := client.Do(ctx, client.B().Get().Key(key).Build()).ToString()
		if err != nil && !rueidis.IsRedisNil(err) {
			return a.explain(err)
		}
		if leads = who == a.self; !leads {
			return nil
		}
		// Between the two it may have passed to another, if this one asks at the last
		// moment; then two do for a moment what one should, which is no harm.
		return client.Do(ctx, client.B().Pexpire().Key(key).Milliseconds(d.Milliseconds()).Build()).Error()
	})
	return leads, err
}

func (a *Store) explain(err error) error { return a.conn.Explain("", err) }

// rollEvery is how often a slot that still changes is rolled up, in steps of the level
// below. If every instance dies and none starts before the finer slots expire, little is
// lost.
const rollEvery = 10

// grace is how long after its end a slot may still get parts in the ordinary way.
const grace = 5

// rolled remembers when each level was last rolled up here although it goes on.
type rolled struct {
	mu sync.Mutex
	at map[string]int64
}

// due reports whether it is time for the slots of a level that go on.
func (r *rolled) due(key string, now, every int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, ok := r.at[key]; ok && now >= last && now < last+every {
		return false
	}
	r.at[key] = now
	return true
}

// RollUp writes the sums that have changed. Any number of instances may call it, at any
// time: each gets the same result. If one is killed, the marks remain, and another
// instance continues.
func (a *Store) RollUp(ctx context.Context, now time.Time) error {
	for kind := range archive.Kinds {
		levels := a.kept[kind]
		for level := 1; level < len(levels); level++ {
			if err := a.rollLevel(ctx, kind, level, now.Unix()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *Store) rollLevel(ctx context.Context, kind archive.Kind, level int, now int64) error {
	ctx, cancel := context.WithTimeout(ctx, 10*a.conn.Timeout) // many answers, each in time
	defer cancel()
	client, err := a.conn.Client()
	if err != nil {
		return err
	}
	l, below := a.kept[kind][level], a.kept[kind][level-1]
	marks, err := a.marks(ctx, client, kind, level)
	if err != nil || len(marks) == 0 {
		return err
	}
	ongoing := a.rolled.due(a.marksKey(kind, l.Step), now, rollEvery*below.Step)
	for _, start := range slices.Sorted(maps.Keys(marks)) {
		ended := start+l.Step+grace <= now
		if !ended && !ongoing {
			continue
		}
		slot := a.slotKey(kind, l.Step, start)
		before, err := decodeSum(client.Do(ctx, client.B().Get().Key(slot).Build()))
		if err != nil {
			return a.explain(err)
		}
		f, err := a.sum(ctx, client, kind, level, start, before)
		if err != nil {
			return err
		}
		sum := ""
		if f != nil && f != before {
			sum = string(f.Append(nil))
		}
		mark := marks[start]
		if !ended {
			mark = ""
		}
		keys := []string{slot, a.marksKey(kind, l.Step)}
		args := []string{mark, seconds(start), sum, seconds(l.Keep + slack)}
		if err := rollScript.Exec(ctx, client, keys, args).Error(); err != nil {
			return a.explain(err)
		}
	}
	return nil
}
