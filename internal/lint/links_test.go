package lint

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+)$`)
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	marks   = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// Every link in a document leads to a file of the repository and to a heading in it, and
// every row of a table is whole.
func TestLinks(t *testing.T) {
	root := "../.."
	pages := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) == ".md" {
			text, err := os.ReadFile(path)
			pages[path] = fenced.ReplaceAllString(string(text), "")
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for page, text := range pages {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "|") && !strings.HasSuffix(line, "|") {
				t.Errorf("%s: a row of a table must be one line: %s", page, line)
			}
		}
	}
	links := 0
	headings := map[string]map[string]bool{}
	for page, text := range pages {
		headings[page] = anchors(text)
	}
	for page, text := range pages {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(m[1], "#")
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), filepath.FromSlash(file))
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s leads nowhere", page, m[1])
			} else if anchor != "" && !headings[target][anchor] {
				t.Errorf("%s: there is no heading for %s", page, m[1])
			}
		}
	}
	if links < 100 {
		t.Errorf("only %d links were found", links)
	}
}

// anchors are the headings of a page, spelled as links spell them.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		all[slug(m[1])] = true
	}
	return all
}

// slug spells a heading as links spell it.
func slug(title string) string {
	words := marks.ReplaceAllString(strings.ToLower(title), "")
	return strings.ReplaceAll(words, " ", "-")
}
