package trust

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/disk"
	"github.com/weirhq/weir/internal/notation"
)

// Bounds on a list.
const (
	maxTokens = 1000
	maxName   = 64  // characters
	minToken  = 16  // characters; fewer can be guessed
	maxToken  = 512 // characters; more do not fit into a header with others
)

const remedy = "make one with: openssl rand -hex 32"

// ParseTokens reads a list, a line a token: the name of its holder, its rights, and the token.
// Behind check and charge may stand patterns of the rules and the clients that they are good
// for, as in "check rules=login-* clients=ip:*,user:*". Lines that are blank or begin with #
// are skipped. A source that is one single word is the token of an admin called admin.
//
// No error repeats anything of the source. Who mixes up the columns would otherwise
// find the token in a log.
func ParseTokens(source []byte) (*List, error) {
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

const maxTokenFile = 1 << 20 // bytes

// ReadTokens is ParseTokens of a file, which it names in errors.
func ReadTokens(path string) (*List, error) {
	source, err := disk.ReadFile(path, maxTokenFile, "token file")
	if err != nil {
		return nil, err
	}
	l, err := ParseTokens(source)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

// ReadToken returns the token of a file with exactly one token, for a client. The file
// contains the token alone, or a list with one line.
func ReadToken(path string) (string, error) {
	source, err := disk.ReadFile(path, maxTokenFile, "token file")
	if err != nil {
		return "", err
	}
	lines, err := split(source)
	if err == nil && len(lines) > 1 {
		err = errors.New("token: the file has several tokens; use a file with one token")
	}
	if err == nil {
		_, err = lines[0].entry()
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return lines[0].words[len(lines[0].words)-1], nil
}

// Exposed is whether everybody on this machine can read or write a file. A group may,
// since that is how secrets are handed into containers. It says nothing of files that
// are not there, and nothing on Windows, where permission bits do not tell.
func Exposed(path string) bool {
	info, err := os.Stat(path)
	return err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o006 != 0
}

// maxPatterns is how many patterns a token may have.
const maxPatterns = 100

// patterns bound the rights check and charge.
type patterns struct {
	free          Rights // those without patterns
	check, charge func(rule, key string) bool
}

// grant is a right as a line has it, with what it is good for; nil is everything.
type grant struct {
	right          Rights
	rules, clients []string
}

// rights reads the words between the name and the token.
func (l line) rights(all []string) (rights Rights, bounded *patterns, err error) {
	var grants []grant
	count := 0
	for i, text := range all {
		kind, list, isPattern := strings.Cut(text, "=")
		if !isPattern {
			at := slices.IndexFunc(words, func(w word) bool { return w.name == text })
			if at < 0 {
				return 0, nil, l.fault("word %d is not a right; %s", i+2, notation.Hint(text, names, "write "+strings.Join(names, ", ")))
			}
			grants = append(grants, grant{right: words[at].right})
			continue
		}
		var into *[]string
		if len(grants) > 0 && grants[len(grants)-1].right&^Charge == 0 {
			into = map[string]*[]string{"rules": &grants[len(grants)-1].rules, "clients": &grants[len(grants)-1].clients}[kind]
		}
		values := strings.Split(list, ",")
		count += len(values)
		switch {
		case into == nil:
			return 0, nil, l.fault("word %d has no meaning; patterns are rules=… and clients=…, behind check or charge", i+2)
		case *into != nil:
			return 0, nil, l.fault("word %d repeats patterns of the same right; write one list with commas", i+2)
		case slices.Contains(values, ""):
			return 0, nil, l.fault("word %d has an empty pattern; write patterns with commas between them, such as login-*,signup", i+2)
		case count > maxPatterns:
			return 0, nil, l.fault("more than %d patterns; use * for any characters", maxPatterns)
		}
		*into = values
	}
	free := Rights(0)
	for _, g := range grants {
		if rights |= g.right; g.rules == nil && g.clients == nil {
			free |= g.right
		}
	}
	if free == rights && count > 0 {
		return 0, nil, l.fault("another right of the line includes the one with patterns; remove one of the two")
	}
	if count > 0 {
		bounded = &patterns{free, permits(grants, Check), permits(grants, Charge)}
	}
	return rights, bounded, nil
}

// permits returns whether any of the grants with a right is good for a rule and a key.
func permits(grants []grant, right Rights) func(rule, key string) bool {
	return func(rule, key string) bool {
		return slices.ContainsFunc(grants, func(g grant) bool {
			return g.right.Has(right) && (g.rules == nil || matchesAny(g.rules, rule)) && (g.clients == nil || g.includes(key))
		})
	}
}

// includes reports whether each part of a key matches a pattern: who may charge ip:* must not
// choose the user in ip:192.0.2.1|user:alice. A "\" stands before a "|" that is part of a value.
func (g *grant) includes(key string) bool {
	begin := 0
	for i := 0; i < len(key); i++ {
		switch key[i] {
		case '\\':
			i++
		case '|':
			if !matchesAny(g.clients, key[begin:i]) {
				return false
			}
			begin = i + 1
		}
	}
	return matchesAny(g.clients, key[begin:])
}

func matchesAny(patterns []string, text string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, text) })
}

// matches reports whether a text matches a pattern, in which * stands for any characters.
func matches(pattern, text string) bool {
	first, rest, found := strings.Cut(pattern, "*")
	if !found {
		return pattern == text
	}
	if !strings.HasPrefix(text, first) {
		return false
	}
	text = text[len(first):]
	for {
		var next string
		if next, rest, found = strings.Cut(rest, "*"); !found {
			return strings.HasSuffix(text, next)
		}
		at := strings.Index(text, next)
		if at < 0 {
			return false
		}
		text = text[at+len(next):]
	}
}
