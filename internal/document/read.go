package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"unicode/utf8"
)

// Bounds on a document.
const (
	MaxSize   = 4 << 20 // bytes
	MaxDepth  = 16      // lists and mappings within each other
	MaxValues = 500_000 // names and values
	MaxItem   = 250_000 // of them in one item that ReadEach gives, and in the tree beside
)

// Fault is why a document cannot be read.
type Fault struct {
	Position
	Why     Why
	Message string // a sentence that names the remedy
}

// Why is a kind of fault.
type Why uint8

const (
	Syntax  Why = iota // neither YAML nor JSON
	Bounds             // too large, or too deep
	Foreign            // a feature of YAML that is not taken
	Twice              // a name that a mapping has already
	Form               // something that has no place where it is
)

// Read makes a tree of a source, which is JSON if it can be or is called so, and
// YAML otherwise. It tells report of every fault, and returns nil if what is left
// makes no tree. A document without content is Nothing.
func Read(name, source string, report func(Fault)) *Element {
	r := &Reader{Source: withoutMark(source), report: report, most: MaxValues}
	return r.readDocument(name)
}

// ReadAnchored is Read for documents that may name a value with an anchor and repeat it by
// aliases and merge keys. What is repeated counts as if it were written out.
func ReadAnchored(name, source string, report func(Fault)) *Element {
	r := &Reader{Source: withoutMark(source), Anchored: true, report: report, most: MaxValues}
	return r.readDocument(name)
}

// Long counts the documents that ReadEach has read. Only tests look at it, which see to it that
// a document is read once and then passed on.
var Long atomic.Int64

// ReadEach is Read for documents that are long because of one list. The items of the
// list that the document has under this name go to each, one by one, and not into the
// tree, where the list is empty. What was given to each stands even if there is no tree
// in the end.
func ReadEach(name, source string, report func(Fault), list string, each func(*Element)) *Element {
	Long.Add(1)
	r := &Reader{Source: withoutMark(source), report: report, list: list, each: each, most: MaxItem}
	return r.readDocument(name)
}

func (r *Reader) readDocument(name string) *Element {
	if len(r.Source) > MaxSize {
		r.Fault(Bounds, Position{}, "the document has %d bytes; the maximum is %d; shorten or split it", len(r.Source), MaxSize)
		return nil
	}
	if !utf8.ValidString(r.Source) {
		at := Seek(r.Source, func(rest string) bool {
			c, n := utf8.DecodeRuneInString(rest)
			return c == utf8.RuneError && n == 1
		})
		r.Fault(Syntax, at, "invalid UTF-8; save the document as UTF-8")
		return nil
	}
	var root *Element
	if r.isJSON(name) {
		root = r.json()
	} else {
		root = r.yaml()
	}
	if root == nil || r.Stopped {
		return nil
	}
	r.inspect(root, 1)
	return root
}

// errNoYAML is a fault of the program, not of the document.
var errNoYAML = errors.New(`this program reads and writes only JSON; import _ "github.com/weirhq/weir/rule/rulefile" in it for YAML`)

var (
	readYAML  func(*Reader) *Element
	writeYAML func(*Element) ([]byte, error)
)

// RegisterYAML lets a program read and write YAML. Package rule/rulefile calls it when it is imported.
func RegisterYAML(read func(*Reader) *Element, write func(*Element) ([]byte, error)) {
	readYAML, writeYAML = read, write
}

func (r *Reader) yaml() *Element {
	if readYAML != nil {
		return readYAML(r)
	}
	if strings.TrimSpace(r.Source) == "" {
		return &Element{}
	}
	r.Fault(Syntax, Position{}, "%v", errNoYAML)
	return nil
}

// Reader is what the readers of all notations share: the source, the bounds, and to whom to tell
// what they find.
type Reader struct {
	Source   string
	Anchored bool // anchors, aliases and merge keys are taken
	Stopped  bool // there is no use in reading on

	report func(Fault)
	list   string // the items of which go to each
	each   func(*Element)
	values int // in the tree, or in the item that is being read
	most   int // of these
}

// Count is for every value, before it is made.
func (r *Reader) Count(at Position) {
	if r.values++; r.values > r.most {
		r.Stop(Bounds, at, "more than %d names and values; write fewer", r.most)
	}
}

// Item counts the values of an item by themselves, until done is called.
func (r *Reader) Item() (done func()) {
	values := r.values
	r.values = 0
	return func() { r.values = values }
}

// Stop reports a fault after which nothing is read any more.
func (r *Reader) Stop(why Why, at Position, format string, args ...any) {
	r.Fault(why, at, format, args...)
	r.Stopped = true
}

// IsGiven is whether the items of the list with this name, at the top, go to each.
func (r *Reader) IsGiven(name *Element) bool { return r.each != nil && name.Text == r.list }

// Give gives an item to each.
func (r *Reader) Give(item *Element) {
	if !r.Stopped {
		r.inspect(item, 3)
		r.each(item)
	}
}

func (r *Reader) Fault(why Why, at Position, format string, args ...any) {
	if r.Stopped {
		return
	}
	r.report(Fault{at, why, fmt.Sprintf(format, args...)})
}

func (r *Reader) isJSON(name string) bool {
	content := strings.TrimLeft(r.Source, " \t\r\n")
	if content == "" {
		return false
	}
	return strings.HasSuffix(name, ".json") || strings.IndexByte(`{["`, content[0]) >= 0 && json.Valid([]byte(r.Source))
}

// inspect checks what holds for either notation. What is too deep is cut off.
func (r *Reader) inspect(e *Element, depth int) {
	if depth > MaxDepth && (e.Kind == List || e.Kind == Mapping) {
		r.Fault(Bounds, e.Position, "more than %d levels of nesting; remove brackets or indentation", MaxDepth)
		e.Items, e.Members = nil, nil
		return
	}
	for _, item := range e.Items {
		r.inspect(item, depth+1)
	}
	first := make(map[string]Position, len(e.Members))
	for _, m := range e.Members {
		if at, twice := first[m.Name.Text]; twice {
			r.Fault(Twice, m.Name.Position, "this name is in the mapping twice, first in line %d; remove one", at.Line)
		} else {
			first[m.Name.Text] = m.Name.Position
		}
		r.inspect(m.Value, depth+1)
	}
}

// json reads JSON. It is nearly YAML, but the standard library also reads the rest,
// such as escapes for characters beyond 16 bits.
func (r *Reader) json() *Element {
	at := walker{Position{1, 1}, r.Source, 0}
	if err := json.Unmarshal([]byte(r.Source), new(ignored)); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			at.advance(int(syntax.Offset) - 1)
		}
		r.Fault(Syntax, at.Position, "invalid JSON: %v; check the commas, quotes and brackets before it", err)
		return nil
	}
	j := &jsonReader{Reader: r, decoder: json.NewDecoder(strings.NewReader(r.Source)), at: at}
	j.decoder.UseNumber()
	return j.value(1)
}

// ignored is a value of which nothing is kept.
type ignored struct{}

func (*ignored) UnmarshalJSON([]byte) error { return nil }

// jsonReader reads a source that is known to be valid.
type jsonReader struct {
	*Reader
	decoder *json.Decoder
	at      walker
}

// token returns the next token and where it begins.
func (j *jsonReader) token() (json.Token, Position) {
	j.at.advance(int(j.decoder.InputOffset()))
	j.at.skip(" \t\r\n,:")
	t, err := j.decoder.Token()
	if err != nil {
		return nil, j.at.Position
	}
	return t, j.at.Position
}

func (j *jsonReader) value(depth int) *Element {
	t, at := j.token()
	j.Count(at)
	e := &Element{Position: at}
	switch t := t.(type) {
	case json.Delim:
		e.Kind = List
		if t == '{' {
			e.Kind = Mapping
		}
		j.content(e, depth)
	case string:
		e.Kind, e.Text = Text, t
	case json.Number:
		e.Kind, e.Text = Other, t.String()
		if IsInteger(e.Text) {
			e.Kind = Integer
		}
	case bool:
		e = NewTruth(t)
		e.Position = at
	}
	return e
}

// content reads up to the closing bracket.
func (j *jsonReader) content(e *Element, depth int) {
	for j.decoder.More() && !j.Stopped {
		if e.Kind == List {
			e.Items = append(e.Items, j.value(depth+1))
			continue
		}
		name := j.value(depth + 1)
		if depth == 1 && j.IsGiven(name) {
			e.Members = append(e.Members, Member{name, j.stream()})
			continue
		}
		e.Members = append(e.Members, Member{name, j.value(depth + 1)})
	}
	j.token()
}

// stream reads a value whose items, if it is a list, go to each.
func (j *jsonReader) stream() *Element {
	if rest := strings.TrimLeft(j.Source[j.decoder.InputOffset():], " \t\r\n:"); !strings.HasPrefix(rest, "[") {
		return j.value(2)
	}
	_, at := j.token()
	for j.decoder.More() && !j.Stopped {
		done := j.Item()
		j.Give(j.value(3))
		done()
	}
	j.token()
	return &Element{Position: at, Kind: List}
}
