package rule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/notation"
)

// field is a field of a mapping that makes a T: how it is read, if it is there, and how it
// is written.
type field[T any] struct {
	name  string
	read  func(p *parser, e *document.Element, path string, to *T) // nil if it is read together with others
	write func(from *T) *document.Element                          // nil for a default
}

// fieldTable is the fields of a mapping, in the order in which they are written.
type fieldTable[T any] struct {
	names  []string
	fields []field[T]
}

func newTable[T any](fields ...field[T]) *fieldTable[T] {
	t := &fieldTable[T]{fields: fields}
	for _, f := range fields {
		t.names = append(t.names, f.name)
	}
	return t
}

// readFields reads a mapping, and returns its fields; nil if it is none.
func (t *fieldTable[T]) readFields(p *parser, e *document.Element, what string, to *T) fields {
	f := p.fields(e, what, t.names)
	t.readAll(p, f, what+": ", to)
	return f
}

// readAll reads fields. Their paths begin with the prefix.
func (t *fieldTable[T]) readAll(p *parser, f fields, prefix string, to *T) {
	for _, one := range t.fields {
		if e := f[one.name]; e != nil && one.read != nil {
			one.read(p, e, prefix+one.name, to)
		}
	}
}

// element writes a mapping of all fields that differ from their defaults.
func (t *fieldTable[T]) element(from *T) *document.Element {
	e := &document.Element{Kind: document.Mapping}
	for _, one := range t.fields {
		e.Add(one.name, one.write(from))
	}
	return e
}

// integerField is a whole number. The usual one is read as 0, and neither is written.
func integerField[T any, N ~int | ~int64](name, code string, least, most, usual int64, of func(*T) *N) field[T] {
	return field[T]{name, func(p *parser, e *document.Element, path string, to *T) {
		if n := p.integer(e, code, path, least, most); n != usual {
			*of(to) = N(n)
		}
	}, func(from *T) *document.Element {
		n := int64(*of(from))
		if n == usual {
			n = 0
		}
		return unless(0, n, document.NewInteger)
	}}
}

// textField is a text in one line.
func textField[T any](name string, of func(*T) *string) field[T] {
	return field[T]{name,
		func(p *parser, e *document.Element, path string, to *T) { *of(to), _ = p.text(e, path, maxText) },
		func(from *T) *document.Element { return unless("", *of(from), document.NewText) }}
}

// truthField is true or false, which is the default.
func truthField[T any](name string, of func(*T) *bool) field[T] {
	return field[T]{name,
		func(p *parser, e *document.Element, path string, to *T) { *of(to) = p.truth(e, path) },
		func(from *T) *document.Element { return unless(false, *of(from), document.NewTruth) }}
}

// wordField is one of a few words, of which the zero value is the default.
func wordField[T any, W wordLike](name string, parse func(string) (W, error), of func(*T) *W) field[T] {
	return field[T]{name,
		func(p *parser, e *document.Element, path string, to *T) { *of(to), _ = word(p, e, path, parse) },
		func(from *T) *document.Element { return unless(0, *of(from), wordElement) }}
}

type wordLike interface {
	~uint8
	String() string
}

func wordElement[W wordLike](w W) *document.Element { return document.NewText(w.String()) }

// mappingField is a mapping that has a table itself.
func mappingField[T, M any](name string, fields *fieldTable[M], of func(*T) *M) field[T] {
	return field[T]{name,
		func(p *parser, e *document.Element, path string, to *T) { fields.readFields(p, e, path, of(to)) },
		func(from *T) *document.Element { return fields.element(of(from)).OrNil() }}
}

// unless writes a value, and nothing if it is what goes without saying.
func unless[T comparable](usual, value T, write func(T) *document.Element) *document.Element {
	if value == usual {
		return nil
	}
	return write(value)
}

// fieldsElsewhere are well-known names of fields, of whichever mapping they stand in.
var fieldsElsewhere = map[string]string{
	"allowlist": "exempt", "allow_list": "exempt", "whitelist": "exempt", "white_list": "exempt",
	"denylist": "block", "deny_list": "block", "blacklist": "block", "black_list": "block", "blocklist": "block", "block_list": "block",
	"name": "id", "rate": "limit", "rates": "limits", "rate_limit": "limit", "by": "key", "strategy": "algorithm",
	"timezone": "zone", "time_zone": "zone", "tz": "zone", "billing_day": "starts", "start": "starts", "anchor": "starts",
	"weight": "cost", "hits_addend": "cost", "failure_mode": "on_failure", "fallback": "on_failure",
	"concurrent": "concurrency", "max_concurrency": "concurrency", "max_concurrent": "concurrency", "concurrent_requests": "concurrency", "in_flight": "concurrency", "max_in_flight": "concurrency",
	"url": "path", "uri": "path", "route": "path", "endpoint": "path", "domain": "host", "verb": "method",
	"warn_at": "warn", "warnings": "warn", "thresholds": "warn", "soft_limit": "warn",
	"status_code": "status", "http_status": "status", "body": "message",
	"address": "ip", "addresses": "ip", "client_ip": "ip", "cidr": "ip", "user_id": "user",
}

const (
	maxName        = 100    // bytes of a tier, an attribute, a header and the like
	maxText        = 1024   // of other texts
	maxDescription = 10_000 // which may have several lines
	maxParts       = 8      // of a key
	maxRates       = 16     // of a quota; each is one more thing to charge
)

// What a mapping is called that is no field.
const (
	wholeDocument = "the document"
	wholeRule     = "a rule"
)

// fields are the values of a mapping by name.
type fields map[string]*document.Element

// fields checks the names in a mapping. What it is says a message.
func (p *parser) fields(e *document.Element, what string, known []string) fields {
	if e == nil {
		return nil
	}
	if e.Kind != document.Mapping {
		p.errorf("E006", e.Position, what, "this is %s; write fields here, such as %s", e.Describe(), strings.Join(known[:min(3, len(known))], ", "))
		return nil
	}
	f, meant := make(fields, min(len(e.Members), len(known))), fields{}
	for _, m := range e.Members {
		name := m.Name.Text
		if slices.Contains(known, name) {
			f[name] = m.Value
			continue
		}
		unknown := what + " has no field " + document.Quote(name)
		if here := notation.NameHere(name, fieldsElsewhere); slices.Contains(known, here) {
			unknown += fmt.Sprintf("; it is called %q here", here)
			meant[here] = m.Value
		} else if near := notation.Nearest(name, known); near != "" {
			unknown += fmt.Sprintf("; did you mean %q?", near)
			meant[near] = m.Value
		} else {
			unknown += "; remove it, or use one of " + strings.Join(known, ", ")
		}
		p.problem(Error, "E005", m.Name.Position, strings.TrimPrefix(fieldPath(what)+"."+document.Clip(name, maxName), "."), unknown)
	}
	for name, value := range meant {
		if f[name] == nil {
			f[name] = value // so that it is not missed, and is checked
		}
	}
	return f
}

// text reads a scalar, also one that looks like a number: names may.
func (p *parser) text(e *document.Element, field string, most int) (string, bool) {
	switch {
	case e == nil:
	case e.Kind == document.Nothing || e.IsScalar() && e.Text == "":
		p.errorf("E006", e.Position, field, "the value is empty; write one, or remove the field")
	case !e.IsScalar():
		p.errorf("E006", e.Position, field, "this is %s; write one value", e.Describe())
	case len(e.Text) > most:
		p.errorf("E006", e.Position, field, "%d bytes exceed the maximum of %d; shorten it", len(e.Text), most)
	case strings.ContainsFunc(e.Text, unicode.IsControl):
		p.errorf("E006", e.Position, field, "it has invisible characters; remove them")
	default:
		return e.Text, true
	}
	return "", false
}

// texts reads one value or a list of them, and returns those that are good.
func (p *parser) texts(e *document.Element, field string, most int) []*document.Element {
	if e == nil {
		return nil
	}
	values := []*document.Element{e}
	if e.Kind == document.List {
		values = e.Items
	}
	if len(values) == 0 {
		p.errorf("E006", e.Position, field, "the list is empty; write a value, or remove the field")
	}
	good := make([]*document.Element, 0, len(values))
	for _, v := range values {
		if _, ok := p.text(v, field, most); ok {
			good = append(good, v)
		}
	}
	return good
}

// integer reads a whole number within bounds.
func (p *parser) integer(e *document.Element, code, field string, least, most int64) int64 {
	if e == nil {
		return 0
	}
	n, err := strconv.ParseInt(e.Text, 10, 64)
	switch {
	case e.Kind != document.Integer:
		p.errorf("E006", e.Position, field, "this is %s; write a whole number without quotes", e.Describe())
	case err != nil || n < least || n > most:
		p.errorf(code, e.Position, field, "%s is out of range; write %d to %d", document.Clip(e.Text, 40), least, most)
	default:
		return n
	}
	return 0
}

// truth reads true or false.
func (p *parser) truth(e *document.Element, field string) bool {
	if e != nil && e.Kind != document.Truth {
		p.errorf("E006", e.Position, field, "this is %s; write true or false", e.Describe())
		return false
	}
	return e != nil && strings.EqualFold(e.Text, "true")
}

// span reads how long something lasts. Check says what is wrong with it, or "".
func (p *parser) span(e *document.Element, code, field string, check func(d time.Duration, text string) string) time.Duration {
	text, ok := p.text(e, field, maxText)
	if !ok {
		return 0
	}
	d, err := notation.ParseDuration(text)
	wrong := ""
	if err != nil {
		wrong = reason(err)
	} else {
		wrong = check(d, text)
	}
	if wrong != "" {
		p.errorf(code, e.Position, field, "%s", wrong)
		return 0
	}
	return d
}

func spanElement(d time.Duration) *document.Element {
	return document.NewText(notation.FormatDuration(d))
}

// word reads one of a few words, and reports whether there is one to go on with.
func word[T any](p *parser, e *document.Element, field string, parse func(string) (T, error)) (value T, ok bool) {
	if e == nil {
		return value, true
	}
	name, ok := p.text(e, field, maxText)
	if !ok {
		return value, false
	}
	value, err := parse(name)
	if err != nil {
		p.errorf("E011", e.Position, field, "%s", reason(err))
	}
	return value, err == nil
}
