package redis

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir"
)

// What is done to a directory by itself. The argument of all but the first begins with how long
// the hold and the directory last, in milliseconds, and with a test's clock or 0.
var (
	// What is no text counts as one that is too short.
	readDirectory = newScript(`
local text = redis.pcall('GET', KEYS[1])
return type(text) == 'table' and '?' or text or ''`)

	writeDirectory = newScript(directoryTimes + `
redis.call('SET', KEYS[1], struct.pack('>BB', 0, 0) .. expires .. content, 'PX', keep, 'NX')
return ''`)

	prolongDirectory = newScript(directoryTimes + `
redis.call('SETRANGE', KEYS[1], 2, expires)
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

// small runs a script on one key, until the context ends. It does not rely on the client for
// that; see leads.
func (s *Store) small(ctx context.Context, what *script, key, arg string) (string, error) {
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	var answer string
	done := make(chan error, 1)
	if !s.aside(func() {
		var err error
		answer, err = what.run(ctx, s.link.client, []string{key}, arg)
		done <- err
	}) {
		return "", errClosed
	}
	select {
	case err := <-done:
		if err != nil {
			return "", explain(err)
		}
		return answer, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// directory is what a hold was charged on.
type directory struct {
	ops     []weir.Op // key, limit and cost
	tags    []string  // nil if there are none
	expires weir.Micros
	late    bool // it is not known whether it was charged
}

func (d *directory) tag(op int) string {
	if d.tags == nil {
		return ""
	}
	return d.tags[op]
}

// describe makes a directory, without ops that have failed. The caller may use the bytes of the keys
// for others.
func describe(r *weir.Reservation, ops []weir.Op, failed ...error) *directory {
	d := &directory{ops: make([]weir.Op, 0, len(ops))}
	for i := range ops {
		if !ops[i].IsHeld() || failed != nil && failed[i] != nil {
			continue
		}
		d.ops = append(d.ops, weir.Op{Key: strings.Clone(ops[i].Key), Limit: ops[i].Limit, Cost: ops[i].Cost})
		if r.Tags != nil {
			d.tags = append(d.tags, r.Tags[i])
		}
	}
	return d
}

func (s *Store) directoryOf(id weir.HoldID) string {
	b := make([]byte, 0, 128)
	b = append(append(append(b, s.prefix...), recordName...), '{')
	b = append(hex.AppendEncode(b, id[:]), '}')
	return string(b)
}

// A record begins with whether the hold has ended, of how many ops it is, and when it
// expires or is forgotten, and has an outcome for each op.
const (
	recordHead, outcomeSize = 9, 14

	roomForOutcome = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" // of one op
)

var errDirectory = errors.New("redis: what a hold was charged on cannot be read")

// find reads the directory of a hold; nil if there is none.
func (s *Store) find(ctx context.Context, id weir.HoldID) (*directory, error) {
	text, err := s.small(ctx, readDirectory, s.directoryOf(id), "")
	if err != nil || text == "" {
		return nil, err
	}
	if len(text) < recordHead || len(text) < recordHead+outcomeSize*int(text[1]) {
		return nil, errDirectory
	}
	d := new(directory)
	for _, b := range []byte(text[2:recordHead]) {
		d.expires = d.expires<<8 | weir.Micros(b)
	}
	rest := []byte(text[recordHead+outcomeSize*int(text[1]):])
	if len(rest) == 0 { // it was settled before it was reserved
		return nil, nil
	}
	if !d.read(rest) {
		return nil, errDirectory
	}
	return d, nil
}

// read reads what limitTexts.append has written.
func (d *directory) read(b []byte) bool {
	for len(b) > 0 && len(d.ops) < weir.MaxOps {
		var parts [4][]byte // key, tag, and of the limit the name and the rest
		for i := range parts {
			size, n := binary.Uvarint(b)
			if n <= 0 || size > uint64(len(b)-n) {
				return false
			}
			parts[i], b = b[n:n+int(size)], b[n+int(size):]
		}
		cost, n := binary.Uvarint(b)
		l, err := weir.ParseLimit(string(parts[3]))
		if n <= 0 || cost > weir.MaxUnits || err != nil {
			return false
		}
		l.Name = string(parts[2])
		limit, err := l.Compile()
		if err != nil {
			return false
		}
		b = b[n:]
		d.ops = append(d.ops, weir.Op{Key: string(parts[0]), Limit: limit, Cost: int64(cost)})
		d.tags = append(d.tags, string(parts[1]))
	}
	return len(b) == 0
}

// maxLimitTexts bounds the limits whose texts are remembered.
const maxLimitTexts = 1024

// limitTexts are those of limits that were reserved last.
type limitTexts struct {
	mu    sync.Mutex
	texts map[*weir.Compiled][]byte
}

func (t *limitTexts) of(c *weir.Compiled) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := t.texts[c]
	if text == nil {
		if len(t.texts) >= maxLimitTexts || t.texts == nil {
			t.texts = make(map[*weir.Compiled][]byte)
		}
		text = appendText(appendText(nil, c.Limit().Name), c.Limit().String())
		t.texts[c] = text
	}
	return text
}

// appendText appends a text after its length.
func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// append appends for each op its key, tag, limit and cost.
func (t *limitTexts) append(b []byte, d *directory) []byte {
	for i := range d.ops {
		op := &d.ops[i]
		b = append(appendText(appendText(b, op.Key), d.tag(i)), t.of(op.Limit)...)
		b = binary.AppendUvarint(b, uint64(op.Cost))
	}
	return b
}
