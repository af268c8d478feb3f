package rule

import (
	"bufio"
	"bytes"
	"fmt"
	"hash/maphash"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/document"
)

// Bounds on a file of clients.
const (
	maxClientLine = 64 << 10 // bytes
	maxKinds      = 64
)

// ReadDirectory reads clients: a JSON object in each line (NDJSON), or a document in YAML or JSON of at most MaxDocument that has
// them in the list "clients". The ending of the name tells which: .yaml, .yml and .json are documents, .ndjson and .jsonl are lines, and anything
// else is lines if it begins with a brace. A client may come before those that it belongs to.
//
// ReadDirectory returns all problems. If there are any, the directory is nil. The error is that of the reader.
func ReadDirectory(name string, r io.Reader) (*Directory, Problems, error) {
	in := bufio.NewReaderSize(r, maxClientLine)
	lines := false
	switch strings.ToLower(filepath.Ext(name)) {
	case ".ndjson", ".jsonl":
		lines = true
	case ".yaml", ".yml", ".json":
	default:
		first, _ := in.Peek(1)
		lines = string(first) == "{"
	}
	d := newDirectoryReader(name)
	read := d.readDocument
	if lines {
		read = d.readLines
	}
	if err := read(name, in); err != nil {
		return nil, nil, err
	}
	d.checkLines()
	problems := withoutCodes(d.done())
	if len(problems) > 0 {
		return nil, problems, nil
	}
	d.records = slices.Clone(d.records)
	return d.Directory, nil, nil
}

// directoryReader makes a directory.
type directoryReader struct {
	*parser
	*Directory
	lines []uint32 // of each client; 0 if it is only named as a parent

	tierOf, noteOf, limitsOf map[string]uint32
	datesOf                  map[dates]uint32
	full                     bool
}

func newDirectoryReader(name string) *directoryReader {
	return &directoryReader{
		parser: newClientParser(name),
		Directory: &Directory{
			index: make([]uint32, 16), seed: maphash.MakeSeed(),
			kinds: make([]string, 1), tiers: make([]string, 1), dates: make([]dates, 1), limitSets: make([][]OwnLimit, 1), notes: make([]string, 1),
		},
		tierOf: map[string]uint32{"": 0}, noteOf: map[string]uint32{"": 0}, limitsOf: map[string]uint32{"": 0}, datesOf: map[dates]uint32{{}: 0},
	}
}

func (d *directoryReader) readDocument(name string, in io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(in, MaxDocument+1))
	if err != nil {
		return err
	}
	defer makeRoom(len(text))()
	root := document.ReadEach(name, string(text), d.fault, "clients", d.readClient)
	if root == nil || root.Kind == document.Nothing {
		return nil
	}
	if clients := d.parser.fields(root, wholeDocument, []string{"clients"})["clients"]; clients != nil && clients.Kind != document.List && clients.Kind != document.Nothing {
		d.errorf("", clients.Place, "clients", "this is %s; write a list, as in - {client: \"user:ann\", tier: pro}", clients.Describe())
	}
	return nil
}

func (d *directoryReader) readLines(_ string, in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxClientLine)
	number := 0
	for lines.Scan() {
		number++
		if line := bytes.TrimSpace(lines.Bytes()); len(line) == 0 || d.full {
			continue
		}
		before := len(d.problems[Error])
		if root := document.Read("line.json", lines.Text(), d.fault); root != nil {
			root.Line = number
			d.readClient(root)
		}
		for i := before; i < len(d.problems[Error]); i++ {
			d.problems[Error][i].Line = number
		}
		if d.found() > 0 { // the next line has the same places
			clear(d.seen)
			clear(d.faults)
		}
	}
	if err := lines.Err(); err == bufio.ErrTooLong {
		d.errorf("", document.Place{Line: number + 1, Column: 1}, "", "the line is longer than %d bytes; write one client in each line", maxClientLine)
	} else if err != nil {
		return err
	}
	return nil
}

// readClient enters a client. One with errors is there, too, for those below.
func (d *directoryReader) readClient(e *document.Element) {
	before := d.found()
	c, at := d.parser.client(e)
	if c.Name == "" || d.full || !d.hasKind(c.part, at) || !d.hasKind(c.above, at) {
		return
	}
	if d.found() > before {
		c = Client{Name: c.Name, part: c.part}
	}
	r := d.recordOf(&c)
	known := d.find(c.Name)
	if known != 0 && d.lines[known-1] != 0 {
		d.errorf("", at, "client", "%s is in line %d, too; remove one of the two", document.Quote(c.Name), d.lines[known-1])
		return
	}
	if c.Parent != "" {
		if r.parent = d.find(c.Parent); r.parent == 0 && c.Parent != c.Name {
			r.parent = d.enterClient(record{name: strings.Clone(c.Parent), kind: d.kind(c.above)}, document.Place{})
		}
	}
	if known == 0 {
		r.name = strings.Clone(c.Name)
		known = d.enterClient(r, e.Place)
	} else {
		r.name = d.records[known-1].name
		d.records[known-1], d.lines[known-1] = r, uint32(e.Line)
	}
	if c.Parent == c.Name {
		d.records[known-1].parent = known
	}
}

// recordOf is a client without its parent and its name.
func (d *directoryReader) recordOf(c *Client) record {
	r := record{
		kind: d.kind(c.part), blocked: c.Blocked, dates: intern(&d.dates, d.datesOf, dates{c.Zone, c.Starts}),
		tier: intern(&d.tiers, d.tierOf, c.Tier), note: intern(&d.notes, d.noteOf, c.Note),
	}
	if len(c.Limits) > 0 {
		text := fmt.Sprintf("%+v", c.Limits)
		if _, known := d.limitsOf[text]; !known {
			d.limitsOf[text] = uint32(len(d.limitSets))
			d.limitSets = append(d.limitSets, c.Limits)
		}
		r.limits = d.limitsOf[text]
	}
	return r
}

func (d *directoryReader) enterClient(r record, at document.Place) uint32 {
	if len(d.records) == MaxClients && !d.full {
		d.full = true
		d.errorf("", at, "", "there are more than %d clients; leave out those that say nothing", MaxClients)
	}
	d.lines = append(d.lines, uint32(at.Line))
	return d.addRecord(r)
}

// hasKind adds the kind of a client, unless there are too many.
func (d *directoryReader) hasKind(p part, at document.Place) bool {
	if p.prefix == "" || slices.Contains(d.kinds, p.prefix) {
		return true
	}
	if len(d.kinds) > maxKinds {
		d.errorf("", at, "client", "%s is one kind of clients too many; the maximum is %d", document.Quote(p.prefix), maxKinds)
		return false
	}
	d.kinds = append(d.kinds, p.prefix)
	if p.source.Kind == Attribute || p.source.Kind == Level {
		d.named = append(d.named, p)
	}
	return true
}

func (d *directoryReader) kind(p part) uint16 { return uint16(slices.Index(d.kinds, p.prefix)) }

// intern returns the number of a value that many clients have.
func intern[T comparable](all *[]T, numbers map[T]uint32, value T) uint32 {
	n, known := numbers[value]
	if !known {
		n = uint32(len(*all))
		numbers[value] = n
		*all = append(*all, value)
	}
	return n
}

// checkLines finds clients that belong to nobody known, or to themselves.
func (d *directoryReader) checkLines() {
	for i := range d.records {
		r := &d.records[i]
		if r.parent == 0 {
			continue
		}
		at := document.Place{Line: int(d.lines[i]), Column: 1}
		if d.lines[r.parent-1] == 0 {
			d.errorf("", at, "parent", "%s is not in the file; add it, or correct the name", document.Quote(d.records[r.parent-1].name))
			continue
		}
		n := 1
		for above := r.parent; above != 0; n++ {
			other := &d.records[above-1]
			if other.kind == r.kind {
				wrong := "%s and %s above it are of the same kind, and a client belongs to one of each; give them names such as division:… and org:…"
				if other == r {
					wrong = "%s belongs to %s, and so to itself; correct one parent in the cycle"
					other = &d.records[r.parent-1]
				}
				d.errorf("", at, "parent", wrong, document.Quote(r.name), document.Quote(other.name))
				break
			}
			if n >= MaxLine {
				d.errorf("", at, "parent", "%s has more than %d levels above it, or a cycle; a client and those above it are at most %d", document.Quote(r.name), MaxLine-1, MaxLine)
				break
			}
			above = other.parent
		}
	}
}
