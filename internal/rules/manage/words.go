package manage

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/rule"
)

// MaxDetail is the maximum length of the text of an error in bytes, because the text may
// quote what a client sent.
const MaxDetail = 1000

// Clip shortens a text to MaxDetail.
func Clip(text string) string { return document.Clip(text, MaxDetail) }

// fieldFirst matches a sentence that begins with the name of a field, which stays in lower
// case.
var fieldFirst = regexp.MustCompile(`^[a-z_]+:`)

// Sentence turns an error of a lower package into a sentence.
func Sentence(err error) string {
	text := err.Error()
	for _, name := range []string{"manage: ", "engine: ", "rule: ", "weir: "} {
		text = strings.TrimPrefix(text, name)
	}
	if first, size := utf8.DecodeRuneInString(text); size > 0 && !fieldFirst.MatchString(text) {
		text = string(unicode.ToUpper(first)) + text[size:]
	}
	return Ended(text)
}

// Ended ends a sentence with a full stop, unless it has an end.
func Ended(text string) string {
	if strings.HasSuffix(text, ".") || strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}

// maxRequestID is the maximum length of an id that a client sends.
const maxRequestID = 64

// RequestID returns the id of a call: the id that the client sent if it is safe to log,
// otherwise a new one.
func RequestID(given []string) string {
	if len(given) == 1 && isRequestID(given[0]) {
		return given[0]
	}
	return NewRequestID()
}

func isRequestID(id string) bool {
	return id != "" && len(id) <= maxRequestID && !strings.ContainsFunc(id, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '.' || r == '_' || r == '-')
	})
}

// NewRequestID returns a random id.
func NewRequestID() string {
	var buf [16]byte
	return string(strconv.AppendUint(buf[:0], rand.Uint64()|1<<63, 16))
}

// Unusable returns the message for rules with errors: the first error, and how many others
// there are.
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
