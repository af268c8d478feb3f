package bearer

import (
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/spelling"
)

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
				return 0, nil, l.fault("word %d is not a right; %s", i+2, spelling.Hint(text, names, "write "+strings.Join(names, ", ")))
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
