package e2e

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// chapter is what two languages of a document have in common, from one heading to the
// next. Sentences may put things in another order, so within a chapter only blocks have
// one.
type chapter struct {
	title string // with its level
	block []string
	link  []string // sorted
	code  []string // what stands between backquotes, sorted
	items int      // of lists
	rows  int      // of tables
}

var (
	// A fenced block with the line that says what it quotes, or an indented one.
	codeBlock = regexp.MustCompile("(?m)(?:^<!-- [^\n]* -->\n)?^```[^\n]*\n(?s:.*?)^```\n|(?:^    [^\n]*\n)+")
	heading   = regexp.MustCompile(`(?m)^#+ .*$`)
	target    = regexp.MustCompile(`\]\(([^)\s]+)\)|(https?://[\w.:/-]+)`)
	span      = regexp.MustCompile("`[^`]+`")
	listItem  = regexp.MustCompile(`(?m)^- `)
	tableRow  = regexp.MustCompile(`(?m)^\|`)
)

// chapters takes a document apart. What stands in a block is no heading and no link.
func chapters(document string) []chapter {
	var blocks []string
	prose := codeBlock.ReplaceAllStringFunc(document, func(block string) string {
		blocks = append(blocks, block)
		return "\x00"
	})
	var all []chapter
	places := append(heading.FindAllStringIndex(prose, -1), []int{len(prose), len(prose)})
	for i, place := range places[:len(places)-1] {
		text := prose[place[1]:places[i+1][0]]
		c := chapter{title: prose[place[0]:place[1]]}
		n := strings.Count(text, "\x00")
		c.block, blocks = blocks[:n], blocks[n:]
		for _, found := range target.FindAllStringSubmatch(text, -1) {
			c.link = append(c.link, found[1]+found[2])
		}
		for _, found := range span.FindAllString(text, -1) {
			c.code = append(c.code, strings.Join(strings.Fields(found), " "))
		}
		slices.Sort(c.link)
		slices.Sort(c.code)
		c.code = slices.Compact(c.code) // a sentence may need a word twice
		c.items, c.rows = len(listItem.FindAllString(text, -1)), len(tableRow.FindAllString(text, -1))
		all = append(all, c)
	}
	return all
}

// level is the rank of a heading.
func (c chapter) level() int { return strings.IndexByte(c.title, ' ') }

// The Chinese README says what the English one does: the same chapters, with the same
// blocks, links and names. make generate copies the blocks.
func TestDocsChinese(t *testing.T) {
	const original, translation = "../../README.md", "../../README.zh.md"
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	source, text := read(original), read(translation)
	if *update {
		blocks := codeBlock.FindAllString(source, -1)
		if n := len(codeBlock.FindAllString(text, -1)); n != len(blocks) {
			t.Fatalf("README.zh.md has %d blocks and README.md has %d; translate what is new first", n, len(blocks))
		}
		written := codeBlock.ReplaceAllStringFunc(text, func(string) string {
			block := blocks[0]
			blocks = blocks[1:]
			return block
		})
		if written != text {
			if err := os.WriteFile(translation, []byte(written), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		text = written
	}
	english, chinese := chapters(source), chapters(text)
	if len(english) < 5 {
		t.Fatalf("README.md has only %d headings", len(english))
	}
	if len(english) != len(chinese) {
		t.Fatalf("README.md has %d headings, README.zh.md has %d", len(english), len(chinese))
	}
	// Each leads to the other, which is the one link that differs.
	english[0].link = without(t, "README.md", english[0].link, "README.zh.md")
	chinese[0].link = without(t, "README.zh.md", chinese[0].link, "README.md")
	for i, want := range english {
		got := chinese[i]
		if got.level() != want.level() {
			t.Errorf("%q stands where README.md has %q", got.title, want.title)
		}
		same(t, got.title, "blocks", got.block, want.block)
		same(t, got.title, "links", got.link, want.link)
		same(t, got.title, "names", got.code, want.code)
		if got.items != want.items || got.rows != want.rows {
			t.Errorf("%s: there are %d items and %d rows, where README.md has %d and %d", got.title, got.items, got.rows, want.items, want.rows)
		}
	}
}

// without takes the link to the other language away, which must be there.
func without(t *testing.T, document string, links []string, other string) []string {
	t.Helper()
	i := slices.Index(links, other)
	if i < 0 {
		t.Errorf("%s does not link to %s below its title", document, other)
		return links
	}
	return slices.Delete(slices.Clone(links), i, i+1)
}

// same reports what only one of the two has.
func same(t *testing.T, title, what string, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	lacking := func(from, in []string) string {
		return strings.Join(slices.DeleteFunc(slices.Clone(in), func(s string) bool { return slices.Contains(from, s) }), "\n")
	}
	t.Errorf("%s: the %s differ from README.md's.\nOnly README.md has:\n%s\nOnly README.zh.md has:\n%s", title, what, lacking(got, want), lacking(want, got))
}
