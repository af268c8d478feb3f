package lint

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// chineseOnly are the pages that have no English counterpart.
var chineseOnly = []string{"docs/zh/terms.md"}

var (
	codeSpan  = regexp.MustCompile("`[^`]+`")
	number    = regexp.MustCompile(`\d+(?:[.,]\d+)*( million)?`)
	listItem  = regexp.MustCompile(`(?m)^\s*(?:[-*]|\d+\.) `)
	linkOrURL = regexp.MustCompile(`\]\(([^)\s]+)\)|<(https?://[^>\s]+)>`)
	toEnglish = regexp.MustCompile(`(?m)^\[English\]\(([^)\s]+)\)$`)
	toChinese = regexp.MustCompile(`(?m)^\[中文\]\(([^)\s]+)\)$`)
)

// Every Chinese page has what its English page has: the same headings, code blocks, links,
// tables, lists, numbers and names in code. With -update, the blocks are copied from the English
// page, and links to English pages lead to their Chinese counterparts.
func TestZh(t *testing.T) {
	names, err := filepath.Glob("../../docs/zh/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages := readPairs(t, append(names, "../../README.zh.md"))
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		zh := pages[name]
		if zh.chinese != "" {
			continue // an English page; its Chinese page is compared with it
		}
		if *update {
			zh = rewrite(t, pages, zh)
			pages[name] = zh
		}
		if zh.english != "" {
			compare(t, pages, pages[zh.english], zh)
		}
		preferChinese(t, pages, zh)
	}
}

// readPairs returns the Chinese pages and their English counterparts, by their paths in the
// repository. The pages name each other in a line of their own.
func readPairs(t *testing.T, names []string) map[string]page {
	t.Helper()
	pages := map[string]page{}
	for _, name := range names {
		zh := readPage(t, strings.TrimPrefix(name, "../../"))
		link := toEnglish.FindStringSubmatch(zh.text)
		if link == nil {
			if !slices.Contains(chineseOnly, zh.path) {
				t.Errorf("%s: there is no line [English](…) that names the English page", zh.path)
			}
			pages[zh.path] = zh
			continue
		}
		zh.english = zh.resolve(link[1])
		en := readPage(t, zh.english)
		if back := toChinese.FindStringSubmatch(en.text); back == nil || en.resolve(back[1]) != zh.path {
			t.Errorf("%s: there is no line [中文](…) that leads to %s", en.path, zh.path)
		}
		en.chinese = zh.path
		pages[zh.path], pages[en.path] = zh, en
	}
	return pages
}

// page is a document. At most one of english and chinese is set: the path of its counterpart.
type page struct {
	path, text       string
	english, chinese string
}

func readPage(t *testing.T, path string) page {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", path))
	if err != nil {
		t.Fatal(err)
	}
	return page{path: path, text: string(text)}
}

// resolve returns the path in the repository to which a link of the page leads.
func (p page) resolve(link string) string {
	if link == "" {
		return p.path
	}
	return filepath.Join(filepath.Dir(p.path), link)
}

// piece is a code block with the comment above it, or a line of anything else.
type piece struct {
	code bool
	text string
}

// pieces splits the page. Its blocks are fenced, or indented after an empty line.
func (p page) pieces() []piece {
	var all []piece
	fence, empty := false, true
	for line := range strings.Lines(p.text) {
		last := len(all) - 1
		switch {
		case fence:
			all[last].text += line
			fence = strings.TrimSpace(line) != "```"
		case strings.HasPrefix(line, "```"):
			fence = true
			if last >= 0 && strings.HasPrefix(all[last].text, "<!-- ") {
				all[last] = piece{true, all[last].text + line}
			} else {
				all = append(all, piece{true, line})
			}
		case strings.HasPrefix(line, "    ") && last >= 0 && all[last].code:
			all[last].text += line
		case strings.HasPrefix(line, "    ") && empty:
			all = append(all, piece{true, line})
		default:
			all = append(all, piece{false, line})
		}
		empty = strings.TrimSpace(line) == ""
	}
	return all
}

func (p page) blocks() []string {
	var all []string
	for _, piece := range p.pieces() {
		if piece.code {
			all = append(all, piece.text)
		}
	}
	return all
}

// section is what two languages have in common between one heading and the next. A
// sentence may order things differently, so only blocks have an order.
type section struct {
	level  int
	title  string
	blocks []string
	prose  string
}

// sectionsOf has the sections of the texts that were split before: every link asks for them.
var sectionsOf = map[string][]section{}

func (p page) sections() []section {
	if known, found := sectionsOf[p.text]; found {
		return known
	}
	all := []section{{}}
	for _, piece := range p.pieces() {
		last := &all[len(all)-1]
		if piece.code {
			last.blocks = append(last.blocks, piece.text)
		} else if m := heading.FindStringSubmatch(piece.text); m != nil {
			all = append(all, section{level: strings.IndexByte(piece.text, ' '), title: m[1]})
		} else if !toEnglish.MatchString(piece.text) && !toChinese.MatchString(piece.text) {
			last.prose += piece.text
		}
	}
	sectionsOf[p.text] = all
	return all
}

// translated returns a link of the page from, as a path in the repository, with the page and
// the heading replaced by those of the counterpart that other names.
func translated(pages map[string]page, from page, link string, other func(page) string) string {
	if strings.Contains(link, "://") {
		return link
	}
	file, anchor, _ := strings.Cut(link, "#")
	target := from.resolve(file)
	to, known := pages[other(pages[target])]
	if known {
		for i, s := range pages[target].sections() {
			if slug(s.title) == anchor && anchor != "" && i < len(to.sections()) {
				anchor = slug(to.sections()[i].title)
				break
			}
		}
		target = to.path
	}
	if anchor != "" {
		target += "#" + anchor
	}
	return target
}

func english(p page) string { return p.english }
func chinese(p page) string { return p.chinese }
func itself(page) string    { return "" }

// links returns where the links of a section lead, sorted.
func (s section) links(pages map[string]page, from page, other func(page) string) []string {
	var all []string
	for _, m := range linkOrURL.FindAllStringSubmatch(s.prose, -1) {
		all = append(all, translated(pages, from, m[1]+m[2], other))
	}
	slices.Sort(all)
	return all
}

// facts returns what both languages write alike: names in code, and numbers. Chinese has a
// word for 0 in many places, and counts millions in ten thousands.
func (s section) facts() []string {
	prose := linkOrURL.ReplaceAllString(s.prose, "]")
	all := number.FindAllString(codeSpan.ReplaceAllString(prose, ""), -1)
	all = slices.DeleteFunc(all, func(n string) bool { return n == "0" || strings.HasSuffix(n, "million") })
	for _, span := range codeSpan.FindAllString(prose, -1) {
		all = append(all, strings.Join(strings.Fields(span), " "))
	}
	return all
}

func compare(t *testing.T, pages map[string]page, en, zh page) {
	t.Helper()
	want, got := en.sections(), zh.sections()
	for i := range max(len(want), len(got)) {
		if i >= len(got) {
			t.Errorf("%s: there is no heading for %q of %s", zh.path, want[i].title, en.path)
			return
		}
		if i >= len(want) {
			t.Errorf("%s: %s has no heading for %q", zh.path, en.path, got[i].title)
			return
		}
		w, g := want[i], got[i]
		place := zh.path + ": " + g.title
		if w.level != g.level {
			t.Errorf("%s: the heading has level %d; %q of %s has level %d", place, g.level, w.title, en.path, w.level)
			return
		}
		if !slices.Equal(w.blocks, g.blocks) {
			t.Errorf("%s: the code blocks differ from those of %s; run go test ./internal/lint -run TestZh -update", place, en.path)
		}
		differ(t, place, "links", w.links(pages, en, itself), g.links(pages, zh, english))
		if lacking := without(w.facts(), g.facts()); len(lacking) > 0 {
			t.Errorf("%s: %s also has %s", place, en.path, strings.Join(lacking, ", "))
		}
		if w, g := len(listItem.FindAllString(w.prose, -1)), len(listItem.FindAllString(g.prose, -1)); w != g {
			t.Errorf("%s: there are %d list items; %s has %d", place, g, en.path, w)
		}
		if w, g := strings.Count("\n"+w.prose, "\n|"), strings.Count("\n"+g.prose, "\n|"); w != g {
			t.Errorf("%s: there are %d table rows; %s has %d", place, g, en.path, w)
		}
	}
}

// preferChinese reports links to English pages that have a Chinese counterpart.
func preferChinese(t *testing.T, pages map[string]page, zh page) {
	t.Helper()
	var english []string
	for _, s := range zh.sections() {
		for _, link := range s.links(pages, zh, itself) {
			file, _, _ := strings.Cut(link, "#")
			if pages[file].chinese != "" {
				english = append(english, link)
			}
		}
	}
	if len(english) > 0 {
		t.Errorf("%s: these links lead to English pages that have a Chinese counterpart; run go test ./internal/lint -run TestZh -update: %q", zh.path, english)
	}
}

func differ(t *testing.T, place, what string, want, got []string) {
	t.Helper()
	if !slices.Equal(want, got) {
		t.Errorf("%s: the %s differ from the English page.\nOnly English: %q\nOnly Chinese: %q\nThere are %d and %d.",
			place, what, without(want, got), without(got, want), len(want), len(got))
	}
}

// without returns what all has and some does not.
func without(all, some []string) []string {
	return slices.Compact(slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(some, s) }))
}

// rewrite copies the blocks of the English page, and leads links to Chinese pages.
func rewrite(t *testing.T, pages map[string]page, zh page) page {
	t.Helper()
	blocks := zh.blocks()
	if en, found := pages[zh.english]; found {
		blocks = en.blocks()
	}
	if n := len(zh.blocks()); n != len(blocks) {
		t.Errorf("%s has %d code blocks and %s has %d; translate what is new first", zh.path, n, zh.english, len(blocks))
		return zh
	}
	text := ""
	for _, part := range zh.pieces() {
		switch {
		case part.code:
			text += blocks[0]
			blocks = blocks[1:]
		case toEnglish.MatchString(part.text):
			text += part.text
		default:
			text += link.ReplaceAllStringFunc(part.text, func(m string) string {
				old := link.FindStringSubmatch(m)[1]
				file, _, _ := strings.Cut(old, "#")
				if strings.Contains(old, "://") || pages[zh.resolve(file)].chinese == "" {
					return m
				}
				relative, err := filepath.Rel(filepath.Dir(zh.path), translated(pages, zh, old, chinese))
				if err != nil {
					t.Fatal(err)
				}
				return "](" + filepath.ToSlash(relative) + ")"
			})
		}
	}
	if text != zh.text {
		if err := os.WriteFile(filepath.Join("../..", zh.path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	zh.text = text
	return zh
}
