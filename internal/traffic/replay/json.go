package replay

import (
	"errors"

	"github.com/weirhq/weir/internal/jsontext"
)

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
	s := jsontext.Scanner{Text: line}
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
func (p *Parser) object(s *jsontext.Scanner, depth int, wanted bool, err *error) bool {
	if depth > maxDepth {
		*err = errDeep
		return false
	}
	outer := len(p.path)
	ok := s.Object(func(name []byte) bool {
		name, ok := jsontext.Unescape(name)
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
func (p *Parser) value(s *jsontext.Scanner, depth int, keep, inside bool, err *error) (ok bool) {
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
			text, ok = jsontext.Unescape(text)
		}
	default:
		if text, ok = s.Word(); ok && text[0] != '-' && (text[0] < '0' || text[0] > '9') {
			return true
		}
	}
	if ok && keep {
		p.keep(text)
	}
	return ok
}

// keep puts a value into the slots that its name is for. An empty one, or a dash,
// says nothing.
func (p *Parser) keep(value []byte) {
	if len(value) == 0 || len(value) == 1 && value[0] == '-' {
		return
	}
	for _, t := range p.json[string(p.path)] {
		if p.found[t.slot] == nil || t.rank < p.rank[t.slot] {
			p.found[t.slot], p.rank[t.slot] = value, t.rank
		}
	}
}
