package manage

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/rule"
)

// MaxDetail is the longest text of an error, in bytes. What a client sent may be quoted
// in it.
const MaxDetail = 1000

// Clip cuts off what is too long for an error.
func Clip(text string) string { return document.Clip(text, MaxDetail) }

// fieldFirst is a sentence that begins with the name of a field, which has no capitals.
var fieldFirst = regexp.MustCompile(`^[a-z_]+:`)

// Sentence makes one of an error of a lower package.
func Sentence(err error) string {
	text := err.Error()
	for _, name := range []string{"manage: ", "engine: ", "rule: ", "weir: "} {
		text = strings.TrimPrefix(text, name)
	}
	if first, size := utf8.DecodeRuneInString(text); size > 0 && !fieldFirst.MatchString(text) {
		text = string(unicode.ToUpper(first)) + text[size:]
	}
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

// maxRequestID is the longest id that is taken over from a client.
const maxRequestID = 64

// RequestIDs is the id of a call, and nothing else: the one that the client gives it, if
// that can do no harm in a log, or a new one.
func RequestIDs(given []string) []string {
	if len(given) == 1 && isRequestID(given[0]) {
		return given[:1:1]
	}
	return []string{NewRequestID()}
}

func isRequestID(id string) bool {
	return id != "" && len(id) <= maxRequestID && !strings.ContainsFunc(id, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '.' || r == '_' || r == '-')
	})
}

// NewRequestID is one for a call that has none.
func NewRequestID() string {
	var room [16]byte
	return string(strconv.AppendUint(room[:0], rand.Uint64()|1<<63, 16))
}

// Policies are limits as rules write them, such as "100/1m". To make such a text costs
// more than all else that is said of a limit, so it is made once for each; when other
// rules are in force, all are forgotten. The zero value is ready to use.
type Policies struct{ now atomic.Pointer[policyTexts] }

type policyTexts struct {
	table *rule.Table
	texts sync.Map // *weir.Compiled → string
}

// Of returns the text of the limit of a result. That of an override is not kept: overrides
// come and go under the same rules.
func (p *Policies) Of(r *engine.Result, e *engine.Engine) string {
	limit := r.Quota
	if r.Override != nil {
		return limit.Limit().Rate()
	}
	table, _ := e.Rules()
	known := p.now.Load()
	if known == nil || known.table != table {
		known = &policyTexts{table: table}
		p.now.Store(known)
	}
	if text, ok := known.texts.Load(limit); ok {
		return text.(string)
	}
	text := limit.Limit().Rate()
	known.texts.Store(limit, text)
	return text
}

// Unusable is what to say of rules with errors.
func Unusable(problems rule.Problems) string {
	text := Sentence(errors.New(problems[0].Message))
	switch more := len(problems) - 1; more {
	case 0:
	case 1:
		text += " There is another error."
	default:
		text += fmt.Sprintf(" There are %d more errors.", more)
	}
	return text
}
