package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/notation"
)

// Bounds on a scenario, so that a hostile file cannot keep a runner busy.
const (
	maxTimes = 1_000_000
	maxAsked = 5_000_000 // ops in all
	maxLines = 10_000
	maxSpan  = 100 * 365 * 24 * 3600 * 1_000_000 // microseconds
)

// Script is a parsed scenario.
type Script struct {
	Name   string // of the file, for messages
	Limits []NamedLimit
	Steps  []Step

	asked int // ops so far
}

// NamedLimit is a limit line.
type NamedLimit struct {
	Name  string // "" for the one limit of a script that names none
	Limit *weir.Compiled
}

// Step is one line that happens.
type Step struct {
	Line  int
	Text  string // the line without its answer and comment
	Verb  string // take, charge, renew, peek, refund, reset, reserve, settle, cancel, extend or count
	At    weir.Micros
	Ops   []weir.Op
	Names []string // the limit's name, for each op
	Times int
	Every time.Duration
	Until weir.Micros // count: the end of the stretch that begins At

	Of       weir.Micros // refund, renew: when it was taken
	OfLatest bool        // refund, renew: no matter when

	Hold string        // reserve, settle, cancel, extend: its name in the script
	TTL  time.Duration // reserve, extend
	Used int64         // settle

	answers []answer
}

// Answered counts the steps that say what they expect.
func (s *Script) Answered() int {
	n := 0
	for i := range s.Steps {
		if len(s.Steps[i].answers) > 0 {
			n++
		}
	}
	return n
}

// Holds reports whether the script has holds, which not every store has.
func (s *Script) Holds() bool {
	return slices.ContainsFunc(s.Steps, func(step Step) bool { return step.Hold != "" })
}

// Parse reads a scenario. All mistakes are reported, each with file and line.
func Parse(name string, src []byte) (*Script, error) {
	s := &Script{Name: name}
	lines := strings.Split(string(src), "\n")
	if len(lines) > maxLines {
		return nil, fmt.Errorf("%s: %d lines are too many; a scenario has at most %d", name, len(lines), maxLines)
	}
	var errs []error
	for i, line := range lines {
		if err := s.parseLine(i+1, line); err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", name, i+1, err))
		}
	}
	return s, errors.Join(errs...)
}

func (s *Script) parseLine(number int, line string) error {
	tokens, err := tokenize(line)
	if err != nil || len(tokens) == 0 {
		return err
	}
	p := &parser{script: s, tokens: tokens}
	switch verb := p.next(); verb {
	case "limit":
		return p.limit()
	case "at", "count":
		question := tokens
		if i := slices.Index(tokens, "->"); i >= 0 {
			question = tokens[:i]
		}
		step := Step{Line: number, Times: 1, Text: strings.Join(question, " ")}
		if verb == "at" {
			p.at(&step)
		} else {
			p.count(&step)
		}
		if p.end(); p.err != nil {
			return p.err
		}
		if s.asked += step.Times * len(step.Ops); s.asked > maxAsked {
			return fmt.Errorf("the scenario asks more than %d times by now; choose less traffic", maxAsked)
		}
		s.Steps = append(s.Steps, step)
		return nil
	default:
		return fmt.Errorf("%q is unknown; a line begins with limit, at or count", verb)
	}
}

// parser walks the tokens of one line. It goes on after a mistake, and keeps the first.
type parser struct {
	script *Script
	tokens []string
	err    error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

// peek returns the next token, "" at the end of the line.
func (p *parser) peek() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return p.tokens[0]
}

func (p *parser) next() string {
	t := p.peek()
	if t != "" {
		p.tokens = p.tokens[1:]
	}
	return t
}

// accept takes the next token if it is the given word.
func (p *parser) accept(word string) bool {
	if p.peek() != word {
		return false
	}
	p.next()
	return true
}

func (p *parser) expect(word string) {
	if !p.accept(word) {
		p.fail("found %q instead of %q", p.peek(), word)
	}
}

func (p *parser) end() {
	if t := p.peek(); t != "" {
		p.fail("%q is unexpected here", t)
	}
}

// whole reads a whole number, or says what is wrong.
func (p *parser) whole(mistake string) int64 {
	n, err := strconv.ParseInt(p.next(), 10, 64)
	if err != nil {
		p.fail("%s", mistake)
	}
	return n
}

func (p *parser) length() time.Duration {
	d, err := notation.ParseDuration(p.next())
	if err != nil {
		p.fail("%w", err)
	}
	return d
}

func (p *parser) instant() weir.Micros {
	at, err := parseInstant(p.next())
	if err != nil {
		p.fail("%w", err)
	}
	return at
}

func (p *parser) limit() error {
	var n NamedLimit
	if name, ok := strings.CutSuffix(p.peek(), ":"); ok {
		n.Name = name
		p.next()
	}
	for _, other := range p.script.Limits {
		if other.Name == n.Name {
			return fmt.Errorf("limit %q already exists; give each limit a name, as in \"limit ip: 3/5s\"", n.Name)
		}
	}
	l, err := weir.ParseLimit(strings.Join(p.tokens, " "))
	if err != nil {
		return err
	}
	n.Limit, err = l.Compile()
	p.script.Limits = append(p.script.Limits, n)
	return err
}

// tokenize splits a line into words; a quoted string, with whatever stands
// before it without a space, is one word. "#" begins a comment, ";" is a word.
func tokenize(line string) ([]string, error) {
	var tokens []string
	for rest := strings.TrimSpace(line); rest != ""; rest = strings.TrimLeft(rest, " \t\r") {
		if rest[0] == '#' {
			break
		}
		if rest[0] == ';' {
			tokens = append(tokens, ";")
			rest = rest[1:]
			continue
		}
		end := strings.IndexAny(rest, " \t\r\";#")
		if end < 0 {
			end = len(rest)
		}
		if end < len(rest) && rest[end] == '"' {
			quoted, err := strconv.QuotedPrefix(rest[end:])
			if err != nil {
				return nil, fmt.Errorf("the quote in %s is never closed", rest)
			}
			end += len(quoted)
		}
		tokens = append(tokens, rest[:end])
		rest = rest[end:]
	}
	return tokens, nil
}
