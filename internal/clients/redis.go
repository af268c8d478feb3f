package clients

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"embed"
	"errors"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/redislink"
)

//go:embed script
var scripts embed.FS

var (
	writeScript   = redislink.Script(scripts, "write")
	changesScript = redislink.Script(scripts, "changes")
)

// Redis is a store that the instances of weir share. Its keys, with the prefix "weir:", are
//
//	weir:{clients}:entries   a hash: name → entry
//	weir:{clients}:position  a hash: token, number
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

func (s *Redis) exec(ctx context.Context, script *rueidis.Lua, args []string) (answer []string, err error) {
	err = s.Do(ctx, func(ctx context.Context, c rueidis.Client) error {
		answer, err = script.Exec(ctx, c, s.keys, args).AsStrSlice()
		return err
	})
	if err != nil {
		return nil, s.Explain("a key that begins with "+s.keys[0], err)
	}
	return answer, nil
}

// Write implements Store. It sends nothing twice.
func (s *Redis) Write(ctx context.Context, base Position, records []Record, _ func(func(Record) bool)) (Position, error) {
	args := []string{base.Token, strconv.FormatUint(base.Number, 10), crand.Text(), s.channel, strconv.Itoa(keptChanges)}
	for _, r := range records {
		args = append(args, r.Name, rueidis.BinaryString(r.Text))
	}
	answer, err := s.exec(ctx, writeScript, args)
	switch {
	case err != nil:
		return Position{}, err
	case len(answer) == 0:
		return Position{}, ErrMoved
	}
	return position(answer)
}

// position reads the beginning of an answer.
func position(answer []string) (Position, error) {
	if len(answer)%3 != 2 {
		return Position{}, errors.New("clients: unexpected answer from Redis; check for a proxy in between")
	}
	number, err := strconv.ParseUint(answer[1], 10, 64)
	return Position{answer[0], number}, err
}

// Changes implements Store.
func (s *Redis) Changes(ctx context.Context, since Position) ([]Record, Position, error) {
	answer, err := s.exec(ctx, changesScript, []string{since.Token, strconv.FormatUint(since.Number, 10), strconv.Itoa(readChanges)})
	if err != nil {
		return nil, Position{}, err
	}
	now, err := position(answer)
	if err != nil {
		return nil, Position{}, err
	}
	changes := answer[2:]
	switch {
	case now == since:
		return nil, now, nil
	case now.Token == "" && since.Token != "":
		return nil, Position{}, ErrLost
	case len(changes) == 0:
		return nil, Position{}, ErrMoved
	}
	var records []Record
	for i := 0; i < len(changes); i += 3 {
		records = append(records, Record{changes[i], []byte(changes[i+1])})
	}
	return records, Position{changes[len(changes)-1], since.Number + uint64(len(records))}, nil
}

// Load implements Store.
func (s *Redis) Load(ctx context.Context, each func(Record)) (Position, error) {
	answer, err := s.exec(ctx, changesScript, []string{"", "0", "1"})
	if err != nil {
		return Position{}, err
	}
	known, err := position(answer)
	if err != nil {
		return Position{}, err
	}
	for cursor := uint64(0); ; {
		var found rueidis.ScanEntry
		err := s.Do(ctx, func(ctx context.Context, c rueidis.Client) (err error) {
			found, err = c.Do(ctx, c.B().Hscan().Key(s.keys[0]).Cursor(cursor).Count(scanned).Build()).AsScanEntry()
			return err
		})
		if err != nil {
			return Position{}, s.Explain(s.keys[0], err)
		}
		for i := 0; i+1 < len(found.Elements); i += 2 {
			each(Record{found.Elements[i], []byte(found.Elements[i+1])})
		}
		if cursor = found.Cursor; cursor == 0 {
			break
		}
	}
	for {
		records, now, err := s.Changes(ctx, known)
		if err != nil || now == known {
			return now, err
		}
		for _, r := range records {
			each(r)
		}
		known = now
	}
}

// Watch implements Store.
func (s *Redis) Watch(ctx context.Context, look func()) error {
	return redislink.Follow(ctx, s.Client, s.channel, s.poll, look)
}
