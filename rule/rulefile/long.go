package rulefile

import (
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/weirhq/weir/internal/document"
)

// The YAML library needs about 600 bytes for every value until it is done. So a long
// document is parted between the entries of its lists and mappings, as far as they are
// written in lines, and the library reads one piece after the other. An entry begins in
// a line that is indented as the first one is, and whatever goes on from it is indented
// further. Where a document does not keep to that, a piece is not YAML by itself, and
// this is what is reported.
//
// How many values a piece has is known from its marks before anything is made of it.
const (
	pieceMarks = 8_000  // that are read at once, if there is a place to part them
	maxPiece   = 32_000 // of what cannot be parted: what is in brackets, or a text
	maxMarks   = 1 << 20
)

// part is a part of a source, in whole lines.
type part struct {
	text   string
	line   int // how many lines are before it
	offset int // and bytes
}

// marks is how many lines there are in a text, and signs that begin a value: there are
// at most three values for each. It counts too many rather than too few, since it does
// not know what is in quotes.
func marks(text string) int {
	n := 1
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\n', '\r', ',', '[', '{', '!', '&', '*':
			n++
		case '-', '?', ':':
			if i+1 == len(text) || strings.IndexByte(" \t\r\n,[]{}\"'", text[i+1]) >= 0 || i > 0 && strings.IndexByte("\"'", text[i-1]) >= 0 {
				n++
			}
		}
	}
	return n
}

// long reads a document in pieces.
func (r *reader) long(content part) *document.Element {
	if n := marks(r.Source); n > maxMarks {
		r.Stop(document.Bounds, document.Position{}, "the document has about %d lines and values; the maximum is %d; write fewer", n, maxMarks)
		return nil
	}
	first, at, _ := content.firstLine()
	if hasEntries(first, at) {
		return r.entries(content, first, at, 1, false)
	}
	return r.atOnce(content)
}

// atOnce reads a document that is one piece.
func (r *reader) atOnce(content part) *document.Element {
	root := r.whole(content)
	if root == nil {
		return &document.Element{}
	}
	for _, m := range root.Members {
		if r.IsGiven(m.Name) {
			r.giveAll(m.Value)
		}
	}
	return root
}

// entries reads a list or a mapping that is written in lines.
func (r *reader) entries(p part, first string, at document.Position, depth int, gives bool) *document.Element {
	indent := indentOf(first)
	b := &blockReader{reader: r, depth: depth, gives: gives, into: &document.Element{Position: at, Kind: document.Mapping}}
	begins := func(line string) bool { return beginsMember(line, indent) }
	if isDash(first[indent:]) {
		b.into.Kind = document.List
		begins = func(line string) bool { return indentOf(line) == indent && isDash(line[indent:]) }
	}
	b.read(p, begins)
	return b.into
}

// whole reads what is not parted.
func (r *reader) whole(p part) *document.Element {
	if n := marks(p.text); n > maxPiece {
		_, at, _ := p.firstLine()
		r.Stop(document.Bounds, at, "about %d values within brackets or in one text begin here; the maximum is %d; write each value on its own line, or the document in JSON", n, maxPiece)
		return nil
	}
	root, err := loadYAML(p.text)
	if err != nil {
		r.syntax(err, p)
		r.Stopped = true
		return nil
	}
	if len(root.Content) == 0 {
		return nil
	}
	return r.fromYAML(root.Content[0], document.Position{Line: p.line + 1, Column: 1}, p.line)
}

// giveAll gives the items of a list to each.
func (r *reader) giveAll(list *document.Element) {
	for _, item := range list.Items {
		r.Give(item)
	}
	list.Items = nil
}

// firstLine is the first line that is neither empty nor a comment, where its content
// begins, and its offset.
func (p part) firstLine() (line string, at document.Position, offset int) {
	number := p.line
	for offset, line := range document.EachLine(p.text) {
		number++
		if text := strings.TrimLeft(line, " \t"); text != "" && text[0] != '#' {
			return line, document.Position{Line: number, Column: indentOf(line) + 1}, offset
		}
	}
	return "", document.Position{}, 0
}

// indentOf is how far a line is indented.
func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// isDash is whether a text begins with the dash of an item.
func isDash(text string) bool {
	return strings.HasPrefix(text, "-") && (len(text) == 1 || text[1] == ' ' || text[1] == '\t')
}

// hasEntries is whether a list or a mapping in lines begins at a place.
func hasEntries(line string, at document.Position) bool {
	return line != "" && (isDash(line[at.Column-1:]) || hasName(line[at.Column-1:]))
}

// hasName is whether a text begins with a name and a colon, as far as one line tells.
func hasName(text string) bool {
	if strings.IndexByte("[{|>&!*?@`%\t", text[0]) >= 0 {
		return false
	}
	if quote := text[0]; quote == '"' || quote == '\'' {
		end := 1
		for end < len(text) && text[end] != quote {
			if quote == '"' && text[end] == '\\' {
				end++
			}
			end++
		}
		return strings.HasPrefix(strings.TrimLeft(text[min(end+1, len(text)):], " \t"), ":")
	}
	text, _, _ = strings.Cut(text, " #")
	return strings.Contains(text, ": ") || strings.Contains(text, ":\t") || strings.HasSuffix(strings.TrimRight(text, " \t"), ":")
}

// beginsMember is whether a member of a mapping begins in a line, and not the end of
// what is in brackets, or an item of a list that is no further indented than its name.
func beginsMember(line string, indent int) bool {
	if indentOf(line) != indent || len(line) == indent {
		return false
	}
	text := line[indent:]
	return strings.IndexByte("#\t[{]},", text[0]) < 0 && !isDash(text) && text != ":" && !strings.HasPrefix(text, ": ")
}

// blockReader reads the entries of a list or a mapping.
type blockReader struct {
	*reader
	depth int
	gives bool // the items go to each
	into  *document.Element
}

// read goes through the lines and reads as many entries at once as make a piece.
func (b *blockReader) read(p part, begins func(string) bool) {
	run, entry := part{line: p.line}, part{line: p.line} // where they begin
	runMarks, entryMarks, number, begun := 0, 0, 0, false
	cut := func(from part, to int) part { return part{text: p.text[from.offset:to], line: from.line} }
	end := func(at part) {
		switch {
		case entryMarks > b.reader.piece:
			b.piece(cut(run, entry.offset))
			b.entry(cut(entry, at.offset))
			run, runMarks = at, 0
		case runMarks+entryMarks > b.reader.piece:
			b.piece(cut(run, entry.offset))
			run, runMarks = entry, entryMarks
		default:
			runMarks += entryMarks
		}
		entry, entryMarks = at, 0
	}
	for offset, line := range document.EachLine(p.text) {
		if b.Stopped {
			return
		}
		if begins(line) {
			if begun { // otherwise it goes with what stands before it
				end(part{line: p.line + number, offset: offset})
			}
			begun = true
		}
		entryMarks += marks(line)
		number++
	}
	end(part{line: p.line + number, offset: len(p.text)})
	b.piece(cut(run, len(p.text)))
}

// piece reads some whole entries.
func (b *blockReader) piece(p part) {
	if first, _, _ := p.firstLine(); first == "" || b.Stopped {
		return
	}
	if b.gives {
		defer b.Item()()
	}
	e := b.whole(p)
	switch {
	case e == nil:
		return
	case e.Kind != b.into.Kind:
		b.Stop(document.Syntax, e.Position, "invalid YAML: it is %s, after %s in the same column; check the indentation", e.Describe(), b.into.Describe())
		return
	}
	for _, m := range e.Members {
		b.add(m)
	}
	if b.gives {
		b.giveAll(e)
	}
	b.into.Items = append(b.into.Items, e.Items...)
}

// add adds a member to a mapping.
func (b *blockReader) add(m document.Member) {
	if b.depth == 1 && b.IsGiven(m.Name) {
		b.giveAll(m.Value)
	}
	b.into.Members = append(b.into.Members, m)
}

// entry reads an entry that is long by itself.
func (b *blockReader) entry(p part) {
	switch {
	case b.Stopped:
	case b.into.Kind == document.List:
		b.longItem(p)
	default:
		b.longMember(p)
	}
}

// longItem reads an item that has entries itself, as these without its dash, and any
// other at once.
func (b *blockReader) longItem(p part) {
	_, dash, offset := p.firstLine()
	inner := part{p.text[:offset+dash.Column-1] + " " + p.text[offset+dash.Column:], p.line, 0}
	first, at, _ := inner.firstLine()
	if !hasEntries(first, at) || at.Column <= dash.Column || b.depth == document.MaxDepth {
		b.piece(p)
		return
	}
	if b.gives {
		defer b.Item()()
	}
	e := b.entries(inner, first, at, b.depth+1, false)
	if b.gives {
		b.Give(e)
	} else {
		b.into.Items = append(b.into.Items, e)
	}
}

// longMember reads a member whose value begins in a line after its name, and any other
// at once.
func (b *blockReader) longMember(p part) {
	first, at, offset := p.firstLine()
	if marks(first) > b.reader.piece {
		b.piece(p)
		return
	}
	n, err := loadYAML(first)
	rest := part{text: p.text[offset+len(first):], line: at.Line - 1}
	next, inner, _ := rest.firstLine()
	isInner := hasEntries(next, inner) && (inner.Column > at.Column || inner.Column == at.Column && isDash(next[inner.Column-1:]))
	if err != nil || !isBareName(&n) || first[at.Column-1] == '?' || !isInner || b.depth == document.MaxDepth {
		b.piece(p)
		return
	}
	m := document.Member{Name: b.fromYAML(n.Content[0].Content[0], document.Position{}, at.Line-1)}
	m.Value = b.entries(rest, next, inner, b.depth+1, b.depth == 1 && b.IsGiven(m.Name))
	b.add(m)
}

// isBareName is whether a document is a mapping with a name and nothing behind it.
func isBareName(root *yaml.Node) bool {
	if len(root.Content) == 0 || root.Content[0].Kind != yaml.MappingNode || len(root.Content[0].Content) != 2 {
		return false
	}
	name, value := root.Content[0].Content[0], root.Content[0].Content[1]
	return name.Kind == yaml.ScalarNode && value.Kind == yaml.ScalarNode && value.Tag == "!!null" && value.Value == "" && value.Anchor == ""
}
