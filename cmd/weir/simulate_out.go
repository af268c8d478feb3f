package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/weirhq/weir/internal/simulate"
	"github.com/weirhq/weir/internal/suggest"
)

// drawings are the endings of the files that pictures can be written to.
var drawings = []string{".svg", ".html", ".csv"}

// drawable checks a flag --out.
func drawable(path string) error {
	ending := strings.ToLower(filepath.Ext(path))
	for _, known := range append(drawings, "") {
		if ending == known && (path == "" || ending != "") {
			return nil
		}
	}
	if near := suggest.Nearest(ending, drawings); near != "" {
		return usage("--out: %q is no kind of picture; did you mean %s?", path, near)
	}
	return usage("--out: %q is no kind of picture; write a name that ends in .svg, .html or .csv", path)
}

// drawing is one of the ways to write a result, and writers are all of them.
type (
	drawing func(io.Writer) error
	writers struct{ svg, html, csv drawing }
)

// draw writes a picture into a file, if there is one. The file is written as a
// whole, or not at all if something is wrong with the picture.
func draw(path string, w writers) error {
	if path == "" {
		return nil
	}
	write := map[string]drawing{".svg": w.svg, ".html": w.html, ".csv": w.csv}[strings.ToLower(filepath.Ext(path))]
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// draw plays the cases once more, in the finer slices that a picture has room for.
func (f *simulateFlags) draw(cases []simulate.Case) error {
	if f.out == "" {
		return nil
	}
	reports, err := f.play(cases, simulate.PictureColumns)
	if err != nil {
		return err
	}
	return draw(f.out, writers{
		svg:  func(w io.Writer) error { return simulate.WriteSVG(w, reports) },
		html: func(w io.Writer) error { return simulate.WriteHTML(w, reports) },
		csv:  func(w io.Writer) error { return simulate.WriteCSV(w, reports) },
	})
}
