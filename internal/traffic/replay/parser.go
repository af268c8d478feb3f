package replay

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/notation"
)

// Format is how a log is written.
type Format uint8

const (
	Auto     Format = iota // each line by its first character
	Combined               // nginx and Apache, with fields after it or not
	JSON                   // an object a line
	Envoy                  // Envoy's default
)

var formats = []string{"auto", "combined", "json", "envoy"}

// Formats returns the names that ParseFormat knows.
func Formats() []string { return slices.Clone(formats) }

// ParseFormat reads the name of a format.
func ParseFormat(name string) (Format, error) {
	if i := slices.Index(formats, name); i >= 0 {
		return Format(i), nil
	}
	return Auto, fmt.Errorf("format: %q is unknown; %s", name, notation.Hint(name, formats, "write one of "+strings.Join(formats, ", ")))
}

// String returns the name that ParseFormat reads.
func (f Format) String() string { return formats[f] }

// Fields says where in a line things are, for logs that have them elsewhere than
// usual. A field of a JSON log is named as it is there, with a dot before what is
// inside: "request.remote_ip"; of a list it is the first value. A field of a text
// is a number, counted from 1, where what stands in quotes or brackets is one
// field; or a name, such as "remote_user", "referer" or "user_agent".
//
// An empty field is the usual one of the format; see docs/guides/replay.md.
type Fields struct {
	Time     string // when the request came, or, if there is a duration, when it ended
	Duration string // how long it took, in seconds
	IP       string // of the client; port and brackets are left out
	User     string
	APIKey   string
	Tier     string
	Method   string
	Host     string
	Path     string // with the query

	// Headers, Cookies and Attributes are fields by the name that rules know them by.
	Headers    map[string]string
	Cookies    map[string]string
	Attributes map[string]string

	// Hop tells which of several addresses in the field is the client's, counted
	// from the right: what stands further left, the client may have made up.
	// Default 1.
	Hop int
}

// Entry is one request of a log. Its strings are part of the line, and last as long.
type Entry struct {
	At     int64 // microseconds since the Unix epoch
	IP     netip.Addr
	User   string
	APIKey string
	Tier   string
	Method string
	Host   string
	Path   string // without the query
	Query  string

	// Extra are headers, cookies and attributes, in the order of Parser.Extra.
	Extra []string

	// Whole is whether the time has no fraction of a second.
	Whole bool
}

// Parser takes lines apart. It is for one goroutine.
type Parser struct {
	format Format
	hop    int
	extra  []Extra

	// wholeSeconds is whether a duration without a point is one, too: somebody said
	// so. Otherwise it may be in microseconds, as Apache has it.
	wholeSeconds bool

	text [Envoy + 1][][]slot // by format and position
	json map[string][]target
	open map[string]bool // objects of JSON that have something in them

	found [][]byte // by slot
	rank  []int8   // of what was found; a smaller one is better
	path  []byte   // where in a JSON line we are
}

// Extra is a header, cookie or attribute that a parser looks for.
type Extra struct {
	Kind ExtraKind
	Name string
}

// ExtraKind is what an extra is to a rule.
type ExtraKind uint8

const (
	Header ExtraKind = iota
	Cookie
	Attribute
)

// Extra returns what Entry.Extra has.
func (p *Parser) Extra() []Extra { return p.extra }

// Parse reads one line, without its end. It may change the bytes of the line: what
// is escaped there is plain afterwards.
func (p *Parser) Parse(line []byte, e *Entry) error {
	format := p.format
	if format == Auto {
		format = guess(line)
	}
	clear(p.found)
	var err error
	if format == JSON {
		err = p.parseJSON(line)
	} else {
		err = p.parseText(line, format)
	}
	if err != nil {
		return err
	}
	return p.finish(e)
}

func guess(line []byte) Format {
	switch line = bytes.TrimLeft(line, " \t"); {
	case bytes.HasPrefix(line, []byte("{")):
		return JSON
	case bytes.HasPrefix(line, []byte("[")):
		return Envoy
	}
	return Combined
}

var (
	errQuote   = errors.New("a quote is not closed; the line may be cut off")
	errBracket = errors.New("a bracket is not closed; the line may be cut off")
)

// parseText splits a line into fields: words, and what stands in quotes or
// brackets. Only as many are looked at as somebody wants.
func (p *Parser) parseText(line []byte, format Format) error {
	places := p.text[format]
	at := 0
	for position := 0; position < len(places); position++ {
		for at < len(line) && line[at] == ' ' {
			at++
		}
		if at == len(line) {
			return nil
		}
		field, end, err := textField(line, at)
		if err != nil {
			return err
		}
		at = end
		for _, s := range places[position] {
			p.found[s] = field
		}
	}
	return nil
}

// textField returns the field that begins at a place, and where it ends.
func textField(line []byte, at int) (field []byte, end int, err error) {
	switch line[at] {
	case '"':
		s := document.Scanner{Text: line, At: at}
		field, ok := s.String()
		if !ok {
			return nil, 0, errQuote
		}
		field, _ = document.Unescape(field)
		return field, s.At, nil
	case '[':
		n := bytes.IndexByte(line[at:], ']')
		if n < 0 {
			return nil, 0, errBracket
		}
		return line[at+1 : at+n], at + n + 1, nil
	}
	n := bytes.IndexByte(line[at:], ' ')
	if n < 0 {
		n = len(line) - at
	}
	return line[at : at+n], at + n, nil
}

var (
	errJSON = errors.New("not a JSON object; the line may be cut off")
	errDeep = errors.New("the JSON is nested too deeply")
)

// maxDepth bounds the nesting, and so the stack.
const maxDepth = 16

// ranks of two names of usualJSON that belong together: Caddy's time, and how long
// a request took, which others write in other units.
const rankTS, rankCaddyDuration = 1, 1

// parseJSON goes through an object once and keeps what is on the list of names. It is strict about the
// structure, which tells where names and values are, and lenient within numbers.
func (p *Parser) parseJSON(line []byte) error {
	s := document.Scanner{Text: line}
	p.path = p.path[:0]
	err := errJSON
	if !p.object(&s, 0, true, &err) || !s.AtEnd() {
		return err
	}
	if p.rank[slotDuration] == rankCaddyDuration && p.rank[slotTime] != rankTS {
		p.found[slotDuration] = nil
	}
	return nil
}

// object reads an object. wanted is whether anybody wants something in it.
func (p *Parser) object(s *document.Scanner, depth int, wanted bool, err *error) bool {
	if depth > maxDepth {
		*err = errDeep
		return false
	}
	outer := len(p.path)
	ok := s.Object(func(name []byte) bool {
		name, ok := document.Unescape(name)
		if wanted {
			if p.path = p.path[:outer]; outer > 0 {
				p.path = append(p.path, '.')
			}
			p.path = append(p.path, name...)
		}
		return ok && p.value(s, depth, wanted, wanted, err)
	})
	p.path = p.path[:outer]
	return ok
}

// value reads whatever is next. It is kept if its name is on the list; inside is
// whether names within it may be. For a list, its first value stands that says something.
func (p *Parser) value(s *document.Scanner, depth int, keep, inside bool, err *error) (ok bool) {
	var text []byte
	switch s.Peek() {
	case '{':
		return p.object(s, depth+1, inside && p.open[string(p.path)], err)
	case '[':
		if depth == maxDepth {
			*err = errDeep
			return false
		}
		return s.Items('[', ']', func() bool { return p.value(s, depth+1, keep, false, err) })
	case '"':
		if text, ok = s.String(); ok {
			text, ok = document.Unescape(text)
		}
	default:
		if text, ok = s.Word(); ok && text[0] != '-' && (text[0] < '0' || text[0] > '9') {
			return true
		}
	}
	if ok && keep {
		p.keepValue(text)
	}
	return ok
}

// keepValue puts a value into the slots that its name is for. An empty one, or a dash,
// says nothing.
func (p *Parser) keepValue(value []byte) {
	if len(value) == 0 || len(value) == 1 && value[0] == '-' {
		return
	}
	for _, t := range p.json[string(p.path)] {
		if p.found[t.slot] == nil || t.rank < p.rank[t.slot] {
			p.found[t.slot], p.rank[t.slot] = value, t.rank
		}
	}
}
