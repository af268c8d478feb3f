package ruleedit

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"github.com/weirhq/weir/internal/document"
)

// Errors of a draft.
var (
	// ErrUnreadable is a source that is neither YAML nor JSON, or no rule.
	ErrUnreadable = errors.New("ruleedit: the source cannot be read as one rule")

	// ErrNoObject is a rule that is no object of JSON.
	ErrNoObject = errors.New("ruleedit: the rule is not an object")
)

// Draft is one rule while somebody writes it, by itself. It need not be valid: what it says
// is kept as it is, names and values that no rule has included.
type Draft struct {
	Source []byte // YAML
	Rule   []byte // the same as JSON
}

// ReadDraft reads a rule in YAML, which stays as it is, or in JSON, which becomes YAML.
// The error is ErrUnreadable.
func ReadDraft(source []byte) (Draft, error) {
	root := readMapping(source)
	switch {
	case root == nil:
		return Draft{}, ErrUnreadable
	case isJSON(source):
		return newDraft(root)
	}
	return Draft{source, root.JSON()}, nil
}

// AmendDraft makes another rule of a draft, which is given as JSON. Fields that are the
// same keep their lines, and comments stay where they are, as with [Document.Put]. The error is
// ErrUnreadable or ErrNoObject.
func AmendDraft(source, now []byte) (Draft, error) {
	root := readMapping(source)
	if root == nil {
		return Draft{}, ErrUnreadable
	}
	want := readMapping(now)
	if want == nil || !isJSON(now) {
		return Draft{}, ErrNoObject
	}
	ruleOrder.sort(want)
	if isJSON(source) {
		return newDraft(want)
	}
	if text, ok := amendedDraft(source, root, want); ok {
		if got := readMapping(text); got != nil && sameMeaning(got, want) {
			return Draft{text, got.JSON()}, nil
		}
	}
	return newDraft(want)
}

func newDraft(e *document.Element) (Draft, error) {
	text, err := e.YAML()
	if err != nil {
		return Draft{}, ErrUnreadable
	}
	return Draft{text, e.JSON()}, nil
}

func amendedDraft(source []byte, root, want *document.Element) ([]byte, bool) {
	p := newPage(strings.TrimPrefix(string(source), mark))
	if len(root.Members) == 0 { // nothing but comments
		lines, ok := p.render(want, 0)
		return p.splice(len(p.lines), len(p.lines), lines), ok
	}
	a := &amendment{page: p, order: ruleOrder, indent: root.Column - 1}
	if !a.findFields(root, 0, len(p.lines)) {
		return nil, false
	}
	a.compare(root, want)
	lines, ok := a.lines(0, len(p.lines))
	return []byte(strings.Join(lines, "")), ok
}

// maxDraftValues is how many names and values a draft may have: enough for 30,000 tiers. To
// write one as YAML takes more than a kilobyte of memory.
const maxDraftValues = 150_000

// values counts the names and values of a tree.
func values(e *document.Element) int {
	n := 1
	for _, item := range e.Items {
		n += values(item)
	}
	for _, m := range e.Members {
		n += 1 + values(m.Value)
	}
	return n
}

// readMapping reads a source without faults, which is a mapping or nothing at all.
func readMapping(source []byte) *document.Element {
	faulty := false
	root := document.Read("", string(source), func(document.Fault) { faulty = true })
	switch {
	case root == nil || faulty || values(root) > maxDraftValues:
		return nil
	case root.Kind == document.Nothing:
		root = &document.Element{Kind: document.Mapping}
	case root.Kind != document.Mapping:
		return nil
	}
	return root
}

func isJSON(source []byte) bool {
	content := bytes.TrimLeft(source, " \t\r\n")
	return len(content) > 0 && content[0] == '{' && json.Valid(source)
}

// sameMeaning is whether two trees are the same in JSON, in whatever order.
func sameMeaning(a, b *document.Element) bool {
	return reflect.DeepEqual(meaning(a), meaning(b))
}

func meaning(e *document.Element) any {
	d := json.NewDecoder(bytes.NewReader(e.JSON()))
	d.UseNumber()
	var value map[string]any
	if d.Decode(&value) != nil {
		return nil
	}
	for name, v := range value {
		if v == nil {
			delete(value, name) // which says nothing
		}
	}
	if len(value) == 0 {
		return map[string]any(nil)
	}
	return value
}
