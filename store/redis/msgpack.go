package redis

import "encoding/binary"

// packer appends MessagePack.
type packer []byte

// mostValues are unpacked one by one, onto Lua's stack, which is quicker: an array grows while it
// is unpacked. There is room for 8,000.
const mostValues = 1000

// argument is the script's, of so many values: as they are or, if they are many, as an array, for
// whose length the first three bytes were left.
func (p packer) argument(n int) string {
	if n <= mostValues {
		return string(p[3:])
	}
	p[0] = 0xdc
	binary.BigEndian.PutUint16(p[1:], uint16(n))
	return string(p)
}

func (p *packer) number(x int64) {
	switch {
	case -32 <= x && x < 128:
		*p = append(*p, byte(x))
	case 0 <= x && x < 1<<16:
		*p = append(*p, 0xcd, byte(x>>8), byte(x))
	default:
		*p = append(*p, 0xd3)
		*p = binary.BigEndian.AppendUint64(*p, uint64(x))
	}
}

// unpacker reads the little MessagePack that the script answers in.
type unpacker string

func (u *unpacker) takeBytes(n int) (string, error) {
	if len(*u) < n {
		return "", errAnswer
	}
	s := string(*u)[:n]
	*u = (*u)[n:]
	return s, nil
}

func (u *unpacker) array() (int, error) {
	head, err := u.takeBytes(1)
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
	head, err := u.takeBytes(1)
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
	s, err := u.takeBytes(size)
	var n uint64
	for i := range len(s) {
		n = n<<8 | uint64(s[i])
	}
	return n, err
}
