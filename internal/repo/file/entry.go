package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"

	"github.com/weirhq/weir/internal/repo"
	"github.com/weirhq/weir/internal/ruleedit"
)

// entry is a version in the archive: a comment in one line, and then the document as
// it was. So it can be read, compared and copied back like the document itself.
type entry struct {
	Number  int64       `json:"number"`
	Time    time.Time   `json:"time"`
	Author  string      `json:"author"`
	Summary string      `json:"summary"`
	Digest  repo.Digest `json:"sha256"`

	source []byte
}

const entryMark = "# weir "

func (e *entry) version() repo.Version {
	return repo.Version{Number: e.Number, Time: e.Time, Author: e.Author, Summary: e.Summary, Source: e.source}
}

// used is the version that is in force, with what was read of its source.
func (e *entry) used(read *ruleedit.Document) *repo.Version {
	v := e.version()
	v.Document = read
	return &v
}

func (e *entry) encode() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(entryMark)
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil { // which ends with a line break
		return nil, err
	}
	b.Write(e.source)
	return b.Bytes(), nil
}

var errDamaged = errors.New("it is damaged, and not used; it may be removed")

// decodeHead reads the first line.
func decodeHead(line []byte) (entry, error) {
	var e entry
	text, found := bytes.CutPrefix(line, []byte(entryMark))
	if !found || json.Unmarshal(text, &e) != nil || e.Number < 1 {
		return entry{}, errDamaged
	}
	return e, nil
}

// decode reads an entry. One that was not written to its end has another digest.
func decode(text []byte) (entry, error) {
	head, source, found := bytes.Cut(text, []byte("\n"))
	if !found {
		return entry{}, errDamaged
	}
	e, err := decodeHead(head)
	if err != nil || repo.DigestOf(source) != e.Digest {
		return entry{}, errDamaged
	}
	e.source = source
	return e, nil
}
