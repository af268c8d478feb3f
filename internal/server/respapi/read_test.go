package respapi

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

// gather reads all commands of some bytes that arrive in pieces of a size.
func gather(t testing.TB, data []byte, size int) (all [][]string, err error) {
	t.Helper()
	r := reader{buf: make([]byte, smallBuffer)}
	for len(data) > 0 {
		room := r.room()
		if len(room) == 0 {
			if len(r.buf) == maxCommand {
				t.Fatal("the buffer is full, and nothing was said about it")
			}
			r.resize(min(2*len(r.buf), maxCommand))
			room = r.room()
		}
		n := copy(room[:min(size, len(room))], data)
		data = data[n:]
		r.end += n
		for {
			found, err := r.next()
			if err != nil {
				return all, err
			}
			if !found {
				break
			}
			var args []string
			for i := range r.args {
				args = append(args, string(r.arg(i)))
			}
			all = append(all, args)
			r.consume()
		}
	}
	return all, nil
}

func TestRead(t *testing.T) {
	long := strings.Repeat("x", 3*smallBuffer)
	data := array("PING") + "*0\r\n*-1\r\n\r\n" + array("a", "", "b\r\nc") + "  set  key value \r\nget x\n \n" + array("long", long) + array("PING")
	want := [][]string{{"PING"}, {"a", "", "b\r\nc"}, {"set", "key", "value"}, {"get", "x"}, {"long", long}, {"PING"}}
	for _, size := range []int{1, 2, 3, 5, 100, smallBuffer, len(data)} {
		got, err := gather(t, []byte(data), size)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("in pieces of %d: %v, %d commands", size, err, len(got))
		}
	}
}

func TestReadErrors(t *testing.T) {
	for data, want := range map[string]string{
		"*1\r\n:1\r\n":                      "expected '$', got ':'",
		"*x\r\n":                            "invalid multibulk length",
		"*1\n":                              "invalid multibulk length",
		"*1025\r\n":                         "invalid multibulk length",
		"*2147483648\r\n":                   "invalid multibulk length",
		"*99999999999999999999\r\n":         "invalid multibulk length",
		"*" + strings.Repeat("1", 40):       "too big multibulk count string",
		"*1\r\n$-1\r\n":                     "invalid bulk length",
		"*1\r\n$x\r\n":                      "invalid bulk length",
		"*1\r\n$" + strings.Repeat("1", 40): "too big bulk count string",
		"*1\r\n$536870912\r\n":              errTooLong.Error(),
		"*1\r\n$9223372036854775807\r\n":    errTooLong.Error(),
		"*2\r\n$100000\r\n" + strings.Repeat("x", 100_000) + "\r\n$100000\r\n": errTooLong.Error(),
		"*1\r\n$1\r\nabc":                        "expected CRLF behind a bulk string",
		strings.Repeat("x", maxInline):           "too big inline request",
		strings.Repeat("x ", maxInline/2) + "\n": "too big inline request",
		"set \"a b\" c\r\n":                      "quotes are not supported in an inline request; send an array of bulk strings",
	} {
		for _, size := range []int{1, 7, len(data)} {
			if _, err := gather(t, []byte(data), size); err == nil || err.Error() != want {
				t.Errorf("%.40q in pieces of %d: got %v, want %s", data, size, err, want)
			}
		}
	}
}

// However the bytes arrive, they are the same commands, and the same error.
func FuzzRead(f *testing.F) {
	f.Add([]byte(array("CL.THROTTLE", "user", "15", "30", "60")+"PING\r\n"), 3)
	f.Add([]byte("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$-1\r\n"), 1)
	f.Add([]byte("*0\r\n\r\n \n*-1\r\nx y\n"), 2)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		at, wrong := gather(t, data, max(1, size&0xff))
		once, wrongOnce := gather(t, data, max(1, len(data)))
		if (wrong == nil) != (wrongOnce == nil) || !reflect.DeepEqual(at, once) {
			t.Fatalf("in pieces: %q, %v; at once: %q, %v", at, wrong, once, wrongOnce)
		}
		for _, args := range at {
			for _, a := range args {
				if !bytes.Contains(data, []byte(a)) {
					t.Fatalf("%q was not sent", a)
				}
			}
		}
	})
}

func TestInteger(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "-0": 0, "+7": 7, "007": 7, "9223372036854775807": 1<<63 - 1, "-9223372036854775808": -1 << 63} {
		if got, ok := integer([]byte(text)); !ok || got != want {
			t.Errorf("%s: got %d, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "-", "+", "1 ", " 1", "1.0", "0x1", "--1", "9223372036854775808", "-9223372036854775809", "99999999999999999999"} {
		if got, ok := integer([]byte(text)); ok {
			t.Errorf("%q: got %d", text, got)
		}
	}
}
