package main

import (
	"os"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/testkit"
)

// Every suite is in README.md with how long it takes, and every file of results is of one suite.
func TestSuites(t *testing.T) {
	readme := string(testkit.Must(os.ReadFile("README.md"))(t))
	files := map[string]string{}
	for _, s := range suites {
		if !strings.Contains(readme, "    go run . "+s.Name+" ") || !strings.Contains(readme, "\n## "+s.Name) && !strings.Contains(readme, ", "+s.Name+": ") {
			t.Errorf("README.md does not describe %s", s.Name)
		}
		for _, name := range s.Files {
			if files[name] != "" {
				t.Errorf("%s is of %s and of %s", name, files[name], s.Name)
			}
			files[name] = s.Name
		}
	}
	for _, kept := range testkit.Must(os.ReadDir("results"))(t) {
		if files[kept.Name()] == "" {
			t.Errorf("results/%s is of no suite", kept.Name())
		}
		delete(files, kept.Name())
	}
	for name, suite := range files {
		t.Errorf("%s is not in results/; run go run . %s", name, suite)
	}
}
