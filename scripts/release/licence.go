package main

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// licences are the texts by which a licence is known, with {} for the names of holders, and {n} for
// the number of a clause.
//
//go:embed licences
var licences embed.FS

// noAssertion is SPDX's word for what is not known. A guess would be worse.
const noAssertion = "NOASSERTION"

// maxOther is how many words a file may have beside its licences: names, titles, and which files
// are under which. A condition that somebody has added is longer, or makes a licence another one.
const maxOther = 200

// choice is how a file says that one of its licences is enough, which this program does not read.
var choice = regexp.MustCompile(`\b(at your option|dual licensed|either license|commons clause)\b`)

// licenceOf finds the licences of a file, as an expression of SPDX. All words of a licence must be
// there, in order; white space, punctuation and case do not matter.
func licenceOf(text string) (string, error) {
	rest := words(text)
	if choice.MatchString(rest) {
		return noAssertion, nil
	}
	var found []string
	entries, err := licences.ReadDir("licences")
	if err != nil {
		return "", err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(b.Name(), a.Name()) }) // BSD-3 before BSD-2, whose words it has, too
	for _, entry := range entries {
		content, err := licences.ReadFile(path.Join("licences", entry.Name()))
		if err != nil {
			return "", err
		}
		pattern := strings.NewReplacer("aholder", `.{1,150}?`, "anumber ", `(?:\d )?`).Replace(words(strings.NewReplacer("{}", " aholder ", "{n}", " anumber ").Replace(string(content))))
		known := regexp.MustCompile(pattern)
		if !known.MatchString(rest) {
			continue
		}
		rest = known.ReplaceAllString(rest, "")
		found = append(found, strings.TrimSuffix(entry.Name(), ".notice"))
	}
	slices.Sort(found)
	if found = slices.Compact(found); len(found) == 0 || len(strings.Fields(rest)) > maxOther {
		return noAssertion, nil
	}
	return strings.Join(found, " AND "), nil
}

// words is a text in lower case, with one blank between words and no punctuation.
func words(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }), " ")
}

// licenceIn finds the licence of a module in its directory.
func licenceIn(dir string) (string, error) {
	for _, name := range []string{"LICENSE", "LICENSE.txt", "LICENSE.md", "COPYING"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			return licenceOf(string(text))
		}
	}
	return noAssertion, nil
}

// moduleDirs is where the modules are of which the checkout could be built, by path.
func moduleDirs(checkout string) (map[string]string, error) {
	dirs := map[string]string{}
	for _, args := range [][]string{{"list", "-m", "-f", "{{.Path}} {{.Dir}}", "all"}, {"env", "GOROOT"}} {
		cmd := exec.Command("go", args...)
		cmd.Dir = checkout
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go %s: %w", args[0], err)
		}
		for line := range strings.Lines(string(out)) {
			if module, dir, found := strings.Cut(strings.TrimSpace(line), " "); found {
				dirs[module] = dir
			} else {
				dirs["std"] = module
			}
		}
	}
	return dirs, nil
}

// licenceOfPackage is what an npm package declares, as the lock file of the dashboard has it.
func licenceOfPackage(lock []byte, name string) (string, error) {
	var all struct {
		Packages map[string]struct{ License string }
	}
	if err := json.Unmarshal(lock, &all); err != nil {
		return "", fmt.Errorf("web/package-lock.json: %w", err)
	}
	if declared := all.Packages["node_modules/"+name].License; declared != "" {
		return declared, nil
	}
	return noAssertion, nil
}
