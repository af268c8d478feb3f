package clients

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"embed"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/redislink"
)

//go:embed script
var scripts embed.FS

var (
	writeScript   = redislink.Script(scripts, "position", "write")
	changesScript = redislink.Script(scripts, "position", "changes")
)

// Redis is a store that the instances of weir share. Its keys, with the prefix "weir:", are
//
//	weir:{clients}:entries   a hash: name → entry
//	weir:{clients}:position  a hash: token, number, and how many clients there are
//	weir:{clients}:changes   a stream of the last changes
//
// and the channel weir:{clients}:changed tells of changes. The keys do not expire, because clients stay even if they do not
// change for months. The braces put them on one slot of a cluster.
type Redis struct {
	redislink.Conn
	keys    []string
	channel string
	poll    time.Duration
}

// RedisOptions of a store.
type RedisOptions struct {
	Prefix  string        // of the keys. Default "weir:"
	Timeout time.Duration // of a call. Default 1 s
}

// pollEvery is how often a follower asks, give or take a fifth, so that a change of which the message was lost is seen within a
// second.
const pollEvery = 800 * time.Millisecond

const (
	keptChanges = 10_000 // in the stream, about
	readChanges = 500    // by one call
	scanned     = 1000   // entries by one call, about
)

// NewRedis returns a store in a Redis that need not be there yet: client returns a client, or why there is none.
func NewRedis(client func() (rueidis.Client, error), o RedisOptions) (*Redis, error) {
	s := &Redis{Conn: redislink.Conn{Name: "clients", Client: client, Timeout: o.Timeout}, poll: pollEvery}
	begin := cmp.Or(o.Prefix, "weir:") + "{clients}:"
	s.keys, s.channel = []string{begin + "entries", begin + "position", begin + "changes"}, begin+"changed"
	return s, s.Check(time.Second)
}

func (s *Redis) exec(ctx context.Context, script *rueidis.Lua, args []string) (result rueidis.RedisResult, err error) {
	err = s.Do(ctx, func(ctx context.Context, c rueidis.Client) error {
		result = script.Exec(ctx, c, s.keys, args)
		return result.Error()
	})
	if err != nil {
		err = s.Explain("a key that begins with "+s.keys[0], err)
	}
	return result, err
}

// Write implements Store. It sends nothing twice.
func (s *Redis) Write(ctx context.Context, base Position, records []Record, _ func(func(Record) bool)) (Position, error) {
	next := Position{crand.Text(), base.Number + uint64(len(records))}
	args := []string{base.Token, strconv.FormatUint(base.Number, 10), next.Token, s.channel, strconv.Itoa(keptChanges)}
	for _, r := range records {
		args = append(args, r.Name, rueidis.BinaryString(r.Text))
	}
	result, err := s.exec(ctx, writeScript, args)
	if err != nil {
		return Position{}, err
	}
	if written, err := result.AsBool(); err != nil || !written {
		return Position{}, cmp.Or(err, ErrMoved)
	}
	return next, nil
}

// answer is what Redis has: its position, how many clients, and some changes behind a position.
type answer struct {
	now     Position
	clients int
	changes []string // name, text and token of each
}

// ask returns what has changed since a position, or ErrLost.
func (s *Redis) ask(ctx context.Context, since Position) (a answer, err error) {
	result, err := s.exec(ctx, changesScript, []string{since.Token, strconv.FormatUint(since.Number, 10), strconv.Itoa(readChanges)})
	if err != nil {
		return a, err
	}
	parts, err := result.AsStrSlice()
	if err != nil || len(parts)%3 != 1 || len(parts) < 4 {
		return a, errors.New("clients: unexpected answer from Redis; check for a proxy in between")
	}
	a.now.Token, a.changes = parts[0], parts[4:]
	if a.now.Number, err = strconv.ParseUint(parts[1], 10, 64); err != nil {
		return a, err
	}
	a.clients, err = strconv.Atoi(parts[2])
	switch {
	case err != nil:
		return a, err
	case a.now.Token == "" && (since.Token != "" || parts[3] != "0"):
		return a, ErrLost
	case parts[2] != parts[3]:
		return a, fmt.Errorf("%s of %s clients are there: %w", parts[3], parts[2], ErrLost)
	}
	return a, nil
}

// behind returns the changes behind the position of which ask was asked.
func (a *answer) behind(since Position) (records []Record, to Position, err error) {
	switch {
	case a.now == since:
		return nil, since, nil
	case len(a.changes) == 0:
		return nil, Position{}, ErrMoved
	}
	for i := 0; i < len(a.changes); i += 3 {
		records = append(records, Record{a.changes[i], []byte(a.changes[i+1])})
	}
	return records, Position{a.changes[len(a.changes)-1], since.Number + uint64(len(records))}, nil
}

// Changes implements Store.
func (s *Redis) Changes(ctx context.Context, since Position) ([]Record, Position, error) {
	a, err := s.ask(ctx, since)
	if err != nil {
		return nil, Position{}, err
	}
	return a.behind(since)
}

// Load implements Store.
func (s *Redis) Load(ctx context.Context, each func(Record)) (Position, int, error) {
	a, err := s.ask(ctx, Position{})
	if err != nil {
		return Position{}, 0, err
	}
	for cursor := uint64(0); ; {
		var found rueidis.ScanEntry
		err := s.Do(ctx, func(ctx context.Context, c rueidis.Client) (err error) {
			found, err = c.Do(ctx, c.B().Hscan().Key(s.keys[0]).Cursor(cursor).Count(scanned).Build()).AsScanEntry()
			return err
		})
		if err != nil {
			return Position{}, 0, s.Explain(s.keys[0], err)
		}
		for i := 0; i+1 < len(found.Elements); i += 2 {
			each(Record{found.Elements[i], []byte(found.Elements[i+1])})
		}
		if cursor = found.Cursor; cursor == 0 {
			break
		}
	}
	for known := a.now; ; {
		if a, err = s.ask(ctx, known); err != nil || a.now == known {
			return known, a.clients, err
		}
		var records []Record
		if records, known, err = a.behind(known); err != nil {
			return known, 0, err
		}
		for _, r := range records {
			each(r)
		}
	}
}

// Watch implements Store.
func (s *Redis) Watch(ctx context.Context, look func()) error {
	return redislink.Follow(ctx, s.Client, s.channel, s.poll, look)
}
