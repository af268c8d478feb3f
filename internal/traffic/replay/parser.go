package replay

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"

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
