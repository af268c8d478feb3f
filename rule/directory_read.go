package rule

import (
	"bufio"
	"bytes"
	"io"
	"path/filepath"
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
	d.shared.atLast = d.shared.size()
	d.close()
	return d.Directory, nil, nil
}

// directoryReader makes a directory.
type directoryReader struct {
	*parser
	*Directory
	lines []uint32 // of each client; 0 if it is only named as a parent
	full  bool
}

func newDirectoryReader(name string) *directoryReader {
	return &directoryReader{parser: newClientParser(name), Directory: startDirectory(), lines: make([]uint32, 1)}
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
		d.errorf("", clients.Position, "clients", "this is %s; write a list, as in - {client: \"user:ann\", tier: pro}", clients.Describe())
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
		d.errorf("", document.Position{Line: number + 1, Column: 1}, "", "the line is longer than %d bytes; write one client in each line", maxClientLine)
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
	known := d.indexOf(c.Name)
	if known != 0 && d.lines[known] != 0 {
		d.errorf("", at, "client", "%s is in line %d, too; remove one of the two", document.Quote(c.Name), d.lines[known])
		return
	}
	if known == 0 {
		known = d.enterClient(c.Name, c.part, e.Position)
	}
	d.lines[known] = uint32(e.Line)
	d.fill(known, &c)
	if c.Parent == "" {
		return
	}
	parent := d.indexOf(c.Parent)
	if parent == 0 {
		parent = d.enterClient(c.Parent, c.above, document.Position{})
	}
	d.setParent(known, parent)
}

func (d *directoryReader) enterClient(name string, p part, at document.Position) uint32 {
	if d.Len() == MaxClients && !d.full {
		d.full = true
		d.errorf("", at, "", "there are more than %d clients; leave out those that say nothing", MaxClients)
	}
	d.lines = append(d.lines, 0)
	return d.enter(name, d.kind(p))
}

// hasKind adds the kind of a client, unless there are too many.
func (d *directoryReader) hasKind(p part, at document.Position) bool {
	if !d.hasKinds(p) {
		d.errorf("", at, "client", "%s is one kind of clients too many; the maximum is %d", document.Quote(p.prefix), maxKinds)
		return false
	}
	return true
}

// checkLines finds clients that belong to nobody known, or to themselves.
func (d *directoryReader) checkLines() {
	for i, r := range d.all {
		if r.parent == 0 {
			continue
		}
		at := document.Position{Line: int(d.lines[i]), Column: 1}
		if d.lines[r.parent] == 0 {
			d.errorf("", at, "parent", "%s is not in the file; add it, or correct the name", document.Quote(d.records.at(r.parent).name))
			continue
		}
		n := 1
		for above := r.parent; above != 0; n++ {
			other := d.records.at(above)
			if other == r {
				d.errorf("", at, "parent", ownParent, document.Quote(r.name), document.Quote(d.records.at(r.parent).name))
				break
			}
			if other.kind == r.kind {
				d.errorf("", at, "parent", sameKind, document.Quote(r.name), document.Quote(other.name))
				break
			}
			if n >= MaxLine {
				d.errorf("", at, "parent", tooLong, document.Quote(r.name), MaxLine-1, MaxLine)
				break
			}
			above = other.parent
		}
	}
}
