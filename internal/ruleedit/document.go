package ruleedit

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"sync"

	"github.com/weirhq/weir/rule"
)

// Document is a document of rules: its source, what that says, and what is compiled of it. It is
// made once, by a [Reader] or by an edit of another one, and then passed on. It does not change.
type Document struct {
	Source   []byte
	Set      *rule.Set
	Warnings rule.Problems

	// Table returns the rules as the reader's options say. They are compiled once, when
	// somebody asks.
	Table func() (*rule.Table, error)

	reader *Reader
}

// Reader reads documents. It remembers the last few, so that who is told again and again what is
// stored need not read it again. It is safe for concurrent use.
type Reader struct {
	Name    string // of the documents, as in [rule.Parse]
	Options rule.Options

	mu     sync.Mutex
	recent []*Document // the last that was asked for first
	bad    map[[sha256.Size]byte]error
}

const (
	maxRecent = 4   // the one in force, and what an edit tries
	maxBad    = 100 // as many as a history has
)

// Read reads a document. The error is a *rule.InvalidError.
func (r *Reader) Read(source []byte) (*Document, error) {
	if d := r.remembered(source); d != nil {
		return d, nil
	}
	set, problems := rule.Parse(r.Name, source)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	d := &Document{Source: source, Set: set, Warnings: problems.Warnings(), reader: r}
	d.Table = sync.OnceValues(func() (*rule.Table, error) { return rule.Compile(set, r.Options) })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recent = slices.Insert(r.recent, 0, d)
	r.recent = r.recent[:min(len(r.recent), maxRecent)]
	return d, nil
}

func (r *Reader) remembered(source []byte) *Document {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.recent, func(d *Document) bool { return bytes.Equal(d.Source, source) })
	if i < 0 {
		return nil
	}
	d := r.recent[i]
	r.recent = slices.Insert(slices.Delete(r.recent, i, i+1), 0, d)
	return d
}

// Usable reads a document that is stored, and compiles it: what was parsed compiles, but this is
// the last gate before all instances. Why one cannot be used is remembered, too.
func (r *Reader) Usable(source []byte) (*Document, error) {
	digest := sha256.Sum256(source)
	r.mu.Lock()
	err := r.bad[digest]
	r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	d, err := r.Read(source)
	if err == nil {
		if _, err = d.Table(); err == nil {
			return d, nil
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bad == nil || len(r.bad) >= maxBad {
		r.bad = map[[sha256.Size]byte]error{}
	}
	r.bad[digest] = err
	return nil, err
}
