package bearer

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
)

// Bounds on a list.
const (
	maxTokens = 1000
	maxName   = 64  // characters
	minToken  = 16  // characters; fewer can be guessed
	maxToken  = 512 // characters; more do not fit into a header with others
)

const remedy = "make one with: openssl rand -hex 32"

// Parse reads a list, a line a token: the name of its holder, its rights, and the token.
// Behind check and charge may stand patterns of the rules and the clients that they are good
// for, as in "check rules=login-* clients=ip:*,user:*". Lines that are blank or begin with #
// are skipped. A source that is one single word is the token of an admin called admin.
//
// No error repeats anything of the source. Who mixes up the columns would otherwise
// find the token in a log.
func Parse(source []byte) (*List, error) {
	lines, err := split(source)
	if err != nil {
		return nil, err
	}
	l := &List{entries: make([]entry, 0, len(lines)), bySum: make(map[[sha256.Size]byte]int, len(lines))}
	names := map[string]int{}
	for _, line := range lines {
		e, err := line.entry()
		if err != nil {
			return nil, err
		}
		if before, twice := names[e.holder.Name]; twice {
			return nil, line.fault("same name as line %d; give each token its own name, which the history of the rules shows", before)
		}
		if before, twice := l.bySum[e.sum]; twice {
			return nil, line.fault("same token as line %d; %s", lines[before].number, remedy)
		}
		names[e.holder.Name], l.bySum[e.sum] = line.number, len(l.entries)
		l.entries = append(l.entries, e)
	}
	return l, nil
}

// line is a line of a source that says something.
type line struct {
	number int // from 1
	words  []string
}

// split finds the lines with a token, and makes the one of a single word complete.
func split(source []byte) ([]line, error) {
	var lines []line
	number := 0
	text := strings.TrimPrefix(string(source), "\ufeff") // some editors put it there
	for raw := range strings.Lines(text) {
		number++
		words := strings.Fields(raw)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(lines) == maxTokens {
			return nil, fmt.Errorf("token: more than %d tokens; remove those that are not in use", maxTokens)
		}
		lines = append(lines, line{number, words})
	}
	if len(lines) == 0 {
		return nil, errors.New("token: there is no token; " + remedy)
	}
	if len(lines) == 1 && len(lines[0].words) == 1 {
		lines[0].words = []string{"admin", "admin", lines[0].words[0]}
	}
	return lines, nil
}

func (l line) entry() (entry, error) {
	last := len(l.words) - 1
	if last < 2 {
		return entry{}, l.fault("fewer than three words; write name, rights (%s) and token", strings.Join(names, ", "))
	}
	name, token := l.words[0], l.words[last]
	rights, patterns, err := l.rights(l.words[1:last])
	switch {
	case err != nil:
		return entry{}, err
	case strings.HasPrefix(token, "rules=") || strings.HasPrefix(token, "clients="):
		return entry{}, l.fault("there is no token behind the patterns; write it as the last word")
	case !validName(name):
		return entry{}, l.fault("invalid name; write letters, digits, dots, dashes and underscores, at most %d", maxName)
	case len(token) < minToken:
		return entry{}, l.fault("the token has fewer than %d characters and could be guessed; %s", minToken, remedy)
	case len(token) > maxToken:
		return entry{}, l.fault("the token has more than %d characters; %s", maxToken, remedy)
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return entry{}, l.fault("the token has characters that are not allowed in an HTTP header; %s", remedy)
	}
	return entry{Holder{name, rights, patterns}, sha256.Sum256([]byte(token))}, nil
}

func validName(name string) bool {
	return len(name) <= maxName && !strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("._-", r))
	})
}

func (l line) fault(format string, args ...any) error {
	return fmt.Errorf("token: line %d: %s", l.number, fmt.Sprintf(format, args...))
}
