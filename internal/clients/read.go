package clients

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/weirhq/weir/internal/document"
)

// IsDocument reports whether clients are a document in YAML or JSON with the list "clients", by how they begin. Otherwise
// they are NDJSON, with one client in each line.
func IsDocument(start []byte) bool {
	start = bytes.TrimLeft(start, " \t\r\n")
	rest, brace := bytes.CutPrefix(start, []byte("{"))
	return len(start) > 0 && (!brace || bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n\""), []byte("clients")))
}

// EachInDocument yields the clients of a document as JSON. The error has the place, and comes after some may have been yielded.
func EachInDocument(name string, source []byte, yield func(line int, source []byte)) (wrong error) {
	root := document.ReadEach(name, string(source), func(f document.Fault) {
		wrong = cmp.Or(wrong, fmt.Errorf("%s:%d:%d: %s", name, f.Line, f.Column, f.Message))
	}, "clients", func(e *document.Element) { yield(e.Line, e.JSON()) })
	if wrong == nil && root != nil && root.Kind != document.Nothing && !isList(root) {
		wrong = fmt.Errorf("%s: write only the list of clients, as in clients: [{client: \"user:ann\"}]", name)
	}
	return wrong
}

func isList(root *document.Element) bool {
	list := root.Get("clients")
	return len(root.Members) == 1 && list != nil && (list.Kind == document.List || list.Kind == document.Nothing)
}
