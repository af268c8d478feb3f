package rule

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/weirhq/weir/internal/document"
)

// sourceOrder is the order of fields in a document. At the top they stay as they are,
// with the comments between them.
var sourceOrder = func() *document.Order {
	quotas := &document.Order{Each: &document.Order{Fields: quotaFields}}
	rule := &document.Order{Fields: ruleFields, In: map[string]*document.Order{
		"match": {Fields: matchFields}, "deny": {Fields: denyFields}, "tiers": quotas, "overrides": quotas,
	}}
	list := &document.Order{Fields: listFields}
	return &document.Order{In: map[string]*document.Order{"rules": {Each: rule}, "exempt": list, "block": list}}
}()

// FormatSource tidies a document that a person wrote: it indents by two, brings the
// fields of a rule into the order of the reference, and leaves at most one empty line
// in a row and no spaces at the end of a line. It moves whole lines: comments go with
// the line that they stand on or before, and values, quotes and what is in brackets
// stay as they are. Fields with a comment between them that an empty line sets apart
// from the next one are left in their order. JSON is indented by two.
//
// A document with errors is not touched: nil is returned with the errors. Nor is one
// that would then mean something else, such as one with a dash on a line of its own:
// it is returned as it is, with a warning that says so.
func FormatSource(name string, source []byte) ([]byte, Problems) {
	set, problems := Parse(name, source)
	if set == nil {
		return nil, problems
	}
	tidy, ok := tidySource(name, source)
	if ok {
		again, _ := Parse(name, tidy)
		ok = reflect.DeepEqual(set, again)
	}
	if !ok {
		r := newReport(name, string(source))
		r.warnf("W015", document.Place{}, "the document was left as it is, because lines could not be moved without changing what it says; write a list item beside its dash, and comments outside of texts")
		return source, append(r.done(), problems...)
	}
	return tidy, problems
}

func tidySource(name string, source []byte) ([]byte, bool) {
	root := document.Read(name, string(source), func(document.Fault) {})
	switch {
	case root == nil:
		return nil, false
	case root.Kind == document.Nothing || len(root.Members) == 0:
		return source, true // nothing but comments
	case !strings.HasSuffix(name, ".json") && !json.Valid(source):
		return document.Tidy(source, sourceOrder)
	}
	root.Sort(sourceOrder)
	var b bytes.Buffer
	if err := json.Indent(&b, root.JSON(), "", "  "); err != nil {
		return nil, false
	}
	b.WriteByte('\n')
	return b.Bytes(), true
}
