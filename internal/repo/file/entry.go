package file

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/weirhq/weir/internal/repo"
)

// digest tells documents apart.
type digest [sha256.Size]byte

func digestOf(source []byte) digest { return sha256.Sum256(source) }

// MarshalText writes it in hexadecimal.
func (d digest) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

// UnmarshalText reads what MarshalText writes.
func (d *digest) UnmarshalText(text []byte) error {
	if n, err := hex.Decode(d[:], text[:min(len(text), 2*len(d))]); err != nil || n != len(d) || len(text) != 2*len(d) {
		return errors.New("this is no digest")
	}
	return nil
}

// entry is a version in the archive: a comment in one line, and then the document as
// it was. So it can be read, compared and copied back like the document itself.
type entry struct {
	Number  int64     `json:"number"`
	Time    time.Time `json:"time"`
	Author  string    `json:"author"`
	Summary string    `json:"summary"`
	Digest  digest    `json:"sha256"`

	source []byte
}

const entryMark = "# weir "

func (e *entry) version() repo.Version {
	return repo.Version{Number: e.Number, Time: e.Time, Author: e.Author, Summary: e.Summary, Source: e.source}
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
	if err != nil || digestOf(source) != e.Digest {
		return entry{}, errDamaged
	}
	e.source = source
	return e, nil
}
