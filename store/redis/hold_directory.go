package redis

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/weirhq/weir"
)

// What is done to a directory by itself. The argument of the last two begins with how long
// the hold and the directory last, in milliseconds, and with a test's clock or 0.
var (
	// What is no text counts as one that is too short.
	readDirectory = newSmall(`
local text = redis.pcall('GET', KEYS[1])
return type(text) == 'table' and '?' or text or ''`)

	writeDirectory = newSmall(directoryTimes + `
redis.call('PSETEX', KEYS[1], keep, expires .. content)
return ''`)

	prolongDirectory = newSmall(directoryTimes + `
redis.call('SETRANGE', KEYS[1], 0, expires)
redis.call('PEXPIRE', KEYS[1], keep)
return ''`)
)

const directoryTimes = `
local life, keep, now, content = string.match(ARGV[1], '^(%d+) (%d+) (%d+) (.*)$')
if now == '0' then
  local t = redis.call('TIME')
  now = t[1] * 1000000 + t[2]
else
  now, keep = now - 1, 3600000
end
local expires = struct.pack('>I7', now + life * 1000)`

// directoryArg is the argument of a hold that lasts for so long.
func (s *Store) directoryArg(life time.Duration, content string) string {
	now := int64(0)
	if s.clock != nil {
		now = int64(s.clock()) + 1
	}
	return fmt.Sprint(life.Milliseconds(), " ", (life + weir.HoldMemory).Milliseconds(), " ", now, " ", content)
}

func newSmall(text string) *script {
	s := &script{}
	s.set(text)
	return s
}

// small runs a script on one key, within the timeout.
func (s *Store) small(ctx context.Context, what *script, key, arg string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	answer, err := what.run(ctx, s.link.client, []string{key}, arg)
	if err != nil {
		return "", explain(err)
	}
	return answer, nil
}

var errDirectory = errors.New("redis: what a hold was charged on cannot be read")

// find reads the directory of a hold; nil if there is none.
func (s *Store) find(ctx context.Context, id weir.HoldID) (*directory, error) {
	text, err := s.small(ctx, readDirectory, s.directoryOf(id), "")
	if err != nil || text == "" {
		return nil, err
	}
	if len(text) < 7 {
		return nil, errDirectory
	}
	d := new(directory)
	for _, b := range []byte(text[:7]) {
		d.expires = d.expires<<8 | weir.Micros(b)
	}
	if err := json.Unmarshal([]byte(text[7:]), d); err != nil || len(d.Ops) == 0 || len(d.Ops) > weir.MaxOps {
		return nil, errDirectory
	}
	return d, nil
}

// ops are what was charged.
func (d *directory) ops() (ops []weir.Op, err error) {
	ops = make([]weir.Op, len(d.Ops))
	for i := range d.Ops {
		if ops[i], err = d.Ops[i].op(); err != nil {
			return nil, err
		}
	}
	return ops, nil
}

// op is what was charged.
func (o *directoryOp) op() (weir.Op, error) {
	key, err := base64.StdEncoding.DecodeString(o.Key)
	if err != nil {
		return weir.Op{}, errDirectory
	}
	limit, err := o.Limit.Compile()
	if err != nil {
		return weir.Op{}, errDirectory
	}
	return weir.Op{Key: string(key), Limit: limit, Cost: o.Cost}, nil
}

func quoteBytes(key string) string { return base64.StdEncoding.EncodeToString([]byte(key)) }
