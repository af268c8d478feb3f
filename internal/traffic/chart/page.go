package chart

import "io"

// Page is a document of HTML: pictures, tables and sentences. It needs no script
// and asks no other host for anything.
type Page struct {
	Title string
	Parts []Part
}

// Part is a section of a page. What it lacks is left out.
type Part struct {
	Heading string
	Figure  Figure
	Table   *Table
	Lines   []string // each a paragraph
}

// Table has numbers, flush right, except in the first column and in Words.
type Table struct {
	Head  []string
	Words map[int]bool // other columns that are flush left
	Rows  [][]string
}

// WriteHTML writes the page.
func (p *Page) WriteHTML(w io.Writer) error {
	s := newSheet()
	s.raw("<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n",
		`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">`, "\n",
		`<meta name="viewport" content="width=device-width, initial-scale=1">`, "\n",
		`<meta name="color-scheme" content="light dark">`, "\n",
		"<title>", Escape(p.Title), "</title>\n<style>", pageStyle, "</style>\n",
		"<h1>", Escape(p.Title), "</h1>\n")
	for i := range p.Parts {
		s.part(&p.Parts[i])
	}
	s.raw("</html>\n")
	_, err := w.Write(s.b)
	return err
}

func (s *sheet) part(part *Part) {
	if part.Heading != "" {
		s.raw("<h2>", Escape(part.Heading), "</h2>\n")
	}
	if part.Figure != nil {
		s.raw("<div class=\"scroll\">\n")
		s.open(width, part.Figure.height(), part.Figure.name(), false)
		part.Figure.draw(s, 0)
		s.close()
		s.raw("</div>\n")
	}
	if part.Table != nil {
		s.table(part.Table)
	}
	for _, line := range part.Lines {
		s.raw("<p>", Escape(line), "</p>\n")
	}
}

func (s *sheet) table(t *Table) {
	s.raw("<div class=\"scroll\"><table>\n")
	tag := "th"
	for _, row := range append([][]string{t.Head}, t.Rows...) {
		s.raw("<tr>")
		for i, cell := range row {
			class := ""
			if t.Words[i] {
				class = ` class="word"`
			}
			s.raw("<", tag, class, ">", Escape(cell), "</", tag, ">")
		}
		s.raw("</tr>\n")
		tag = "td"
	}
	s.raw("</table></div>\n")
}
