package redis

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/weirhq/weir"
)

// verbs of the script.
const (
	verbPeek = 0
	verbTake = 1
)

// request is the ops of one script call. Keys and limits are sent once each.
type request struct {
	keys   []string
	limits []*weir.Compiled
	ops    []weir.Op
	at     [][2]int // of each op: its key and its limit, from 1 as in Lua
}

func (s *Store) newRequest(ops []weir.Op) request {
	r := request{ops: ops}
	for i := range ops {
		r.at = append(r.at, [2]int{
			position(&r.keys, s.keyOf(&ops[i])),
			position(&r.limits, ops[i].Limit),
		})
	}
	return r
}

// position finds x in a list, from 1, and adds it if it is not there.
func position[T comparable](list *[]T, x T) int {
	for i, y := range *list {
		if x == y {
			return i + 1
		}
	}
	*list = append(*list, x)
	return len(*list)
}

// encode packs the request as the script's only argument, in MessagePack, which
// the script unpacks in C.
func (r request) encode(now int64, verb int) string {
	b := make(packer, 0, 64+24*len(r.ops))
	b.array(4)
	b.number(now)
	b.number(int64(verb))
	b.array(len(r.limits))
	for _, c := range r.limits {
		l, n := c.Limit(), c.Numbers()
		b.array(11)
		for _, x := range []int64{
			int64(l.Algorithm), l.N, n.Period, n.Capacity, truth(l.Shape), truth(l.CountDenied),
			n.Drain, n.Unit, n.Full, n.Width, n.Buckets,
		} {
			b.number(x)
		}
	}
	b.array(1)
	b.array(4 * len(r.ops))
	for i, op := range r.ops {
		b.number(int64(r.at[i][0]))
		b.number(int64(r.at[i][1]))
		b.number(min(op.Cost, weir.MaxUnits+1)) // whatever is more never fits either
		maxDelay := int64(-1)
		if op.MaxDelay > 0 {
			maxDelay = op.MaxDelay.Microseconds()
		}
		b.number(maxDelay)
	}
	return string(b)
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// packer appends MessagePack.
type packer []byte

func (p *packer) array(n int) {
	*p = append(*p, 0xdc)
	*p = binary.BigEndian.AppendUint16(*p, uint16(n))
}

func (p *packer) number(x int64) {
	switch {
	case 0 <= x && x < 128:
		*p = append(*p, byte(x))
	default:
		*p = append(*p, 0xd3)
		*p = binary.BigEndian.AppendUint64(*p, uint64(x))
	}
}

var errAnswer = errors.New("redis: the script's answer cannot be read")

// decode appends the decisions of an answer to dst.
func (r request) decode(dst []weir.Decision, answer string) ([]weir.Decision, error) {
	u := unpacker(answer)
	n, err := u.array()
	if err != nil || n != 5*len(r.ops) {
		return dst, fmt.Errorf("%w: %d numbers for %d ops, %v", errAnswer, n, len(r.ops), err)
	}
	first := len(dst)
	for i := range r.ops {
		var x [5]int64
		for j := range x {
			if x[j], err = u.number(); err != nil {
				return dst[:first], err
			}
		}
		d := weir.Decision{
			Allowed: x[0] == 1, Limit: r.ops[i].Limit.Capacity(), Remaining: x[1],
			RetryAfter: micros(x[2]), ResetAfter: micros(x[3]), Delay: micros(x[4]),
		}
		if x[2] < 0 {
			d.RetryAfter = weir.Never
		}
		dst = append(dst, d)
	}
	return dst, nil
}

func micros(x int64) time.Duration { return time.Duration(x) * time.Microsecond }

// unpacker reads the little MessagePack that the script answers in.
type unpacker string

func (u *unpacker) take(n int) (string, error) {
	if len(*u) < n {
		return "", errAnswer
	}
	s := string(*u)[:n]
	*u = (*u)[n:]
	return s, nil
}

func (u *unpacker) array() (int, error) {
	head, err := u.take(1)
	if err != nil {
		return 0, err
	}
	switch c := head[0]; {
	case c>>4 == 0x9:
		return int(c & 0xf), nil
	case c == 0xdc:
		n, err := u.bigEndian(2)
		return int(n), err
	case c == 0xdd:
		n, err := u.bigEndian(4)
		return int(n), err
	}
	return 0, errAnswer
}

func (u *unpacker) number() (int64, error) {
	head, err := u.take(1)
	if err != nil {
		return 0, err
	}
	switch c := head[0]; {
	case c < 0x80:
		return int64(c), nil
	case c >= 0xe0:
		return int64(int8(c)), nil
	case 0xcc <= c && c <= 0xcf: // unsigned, of 1, 2, 4 or 8 bytes
		n, err := u.bigEndian(1 << (c - 0xcc))
		return int64(n), err
	case 0xd0 <= c && c <= 0xd3: // signed
		size := 1 << (c - 0xd0)
		n, err := u.bigEndian(size)
		shift := 64 - 8*size
		return int64(n<<shift) >> shift, err
	}
	return 0, errAnswer
}

func (u *unpacker) bigEndian(size int) (uint64, error) {
	s, err := u.take(size)
	var n uint64
	for i := range len(s) {
		n = n<<8 | uint64(s[i])
	}
	return n, err
}
