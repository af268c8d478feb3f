package rules

import (
	"bytes"
	"unsafe"

	"github.com/weirhq/weir/rule"
)

// A request is written into the same few bytes as the one before, as a server reads
// requests into its buffer. Ten thousand of them side by side would compete with the
// rules for the cache, and be measured instead of them.
type letter struct {
	method, host, path, resource text
}

// text has room for a number, which makes it another one.
type text struct {
	bytes  []byte
	number []byte // the part of bytes where it goes; nil for none
}

// blank is where the number goes.
const blank = "#####"

func newLetter(method, host, path, resource string) *letter {
	return &letter{newText(method), newText(host), newText(path), newText(resource)}
}

func newText(s string) text {
	t := text{bytes: []byte(s)}
	if i := bytes.Index(t.bytes, []byte(blank)); i >= 0 {
		t.number = t.bytes[i : i+len(blank)]
	}
	return t
}

// with is the text of a number. It holds until the next one is written.
func (t *text) with(number int) string {
	for i := len(t.number) - 1; i >= 0; i-- {
		t.number[i] = byte('0' + number%10)
		number /= 10
	}
	return unsafe.String(unsafe.SliceData(t.bytes), len(t.bytes))
}

// arrive makes a request of the letter.
func (l *letter) arrive(req *rule.Request, number int) {
	req.Method, req.Host, req.Path = l.method.with(number), l.host.with(number), l.path.with(number)
	if resource := l.resource.with(number); resource != "" {
		req.Attributes["resource"] = resource
	} else if len(req.Attributes) > 0 {
		clear(req.Attributes)
	}
}
