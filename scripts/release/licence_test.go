package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Of no module that a release may contain is the licence unknown. One whose licence is not read
// needs a person, who adds the text of it to the known ones.
func TestLicencesAreKnown(t *testing.T) {
	modules := map[string]bool{"std": true}
	for _, platform := range platforms {
		system, machine, _ := strings.Cut(platform, "/")
		list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./cmd/weir")
		list.Dir, list.Env = root, append(os.Environ(), "GOOS="+system, "GOARCH="+machine, "CGO_ENABLED=0")
		out, err := list.Output()
		if err != nil {
			t.Fatal(platform, err)
		}
		for _, module := range strings.Fields(string(out)) {
			modules[module] = true
		}
	}
	dirs, err := moduleDirs(root) // now that what only another platform needs is downloaded
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for module := range modules {
		if found[module], err = licenceIn(dirs[module]); err != nil {
			t.Fatal(err)
		}
	}
	for module, licence := range found {
		if licence == noAssertion {
			t.Errorf("the licence of %s in %s is not known; read it, and add its text to scripts/release/licences", module, dirs[module])
		}
	}
	for module, want := range map[string]string{
		"std": "BSD-3-Clause", "google.golang.org/grpc": "Apache-2.0", "github.com/spf13/pflag": "BSD-3-Clause", "github.com/beorn7/perks": "MIT",
		"github.com/russross/blackfriday/v2": "BSD-2-Clause", "go.yaml.in/yaml/v3": "Apache-2.0 AND MIT", "github.com/inconshreveable/mousetrap": "Apache-2.0",
	} {
		if found[module] != want {
			t.Errorf("the licence of %s is %q, want %s", module, found[module], want)
		}
	}
	if len(found) < 45 {
		t.Errorf("only %d modules were found", len(found))
	}
}

// What is nearly a licence is none.
func TestLicenceOf(t *testing.T) {
	text := func(name string) string {
		content, err := licences.ReadFile("licences/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return strings.NewReplacer("{n}", "*", "{}", "the holder").Replace(string(content))
	}
	mit, bsd, apache := text("MIT"), text("BSD-3-Clause"), text("Apache-2.0")
	for name, c := range map[string]struct{ text, want string }{
		"MIT":               {"The MIT License\n\nCopyright © 2026 Somebody\n\n" + mit, "MIT"},
		"indented":          {"> " + strings.ReplaceAll(strings.ToUpper(mit), "\n", "\r\n>  "), "MIT"},
		"BSD-3":             {bsd, "BSD-3-Clause"},
		"BSD-2":             {text("BSD-2-Clause"), "BSD-2-Clause"},
		"Apache":            {apache, "Apache-2.0"},
		"notice":            {text("Apache-2.0.notice"), "Apache-2.0"},
		"two":               {mit + bsd, "BSD-3-Clause AND MIT"},
		"nothing":           {"", noAssertion},
		"only the name":     {"MIT License", noAssertion},
		"a word less":       {strings.Replace(mit, "free of charge, ", "", 1), noAssertion},
		"another condition": {strings.Replace(mit, "subject to\nthe following", "subject to payment and\nthe following", 1), noAssertion},
		"advertising":       {strings.Replace(bsd, "* Neither", "* All advertising materials mentioning features or use of this software must\ndisplay an acknowledgement.\n* Neither", 1), noAssertion},
		"half":              {apache[:len(apache)/2], noAssertion},
		"a choice":          {"This work is dual-licensed.\n" + mit + apache, noAssertion},
		"more":              {mit + strings.Repeat("You shall not use it on Sundays. ", 40), noAssertion},
	} {
		if got, err := licenceOf(c.text); got != c.want || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got, err := licenceIn(t.TempDir()); got != noAssertion || err != nil {
		t.Errorf("no file: %q, %v", got, err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "LICENSE.md"), []byte(mit), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := licenceIn(dir); got != "MIT" || err != nil {
		t.Errorf("a file: %q, %v", got, err)
	}
	for lock, want := range map[string]string{`{"packages": {"node_modules/uplot": {"license": "MIT"}}}`: "MIT", `{}`: noAssertion} {
		if got, err := licenceOfPackage([]byte(lock), "uplot"); got != want || err != nil {
			t.Errorf("%s: %q, %v", lock, got, err)
		}
	}
}
