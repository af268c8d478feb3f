package build

import (
	"os"
	"strings"
	"testing"
)

// "make build" builds the same.
func TestMakefile(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	last := len(Flags) - 1
	text := strings.ReplaceAll(string(makefile), "$(AS_BUILT)", variable(t, string(makefile), "AS_BUILT"))
	want := "CGO_ENABLED=0 go build " + strings.Join(Flags[:last], " ") + " -pgo=$(CURDIR)/" + profile + " '" + Flags[last] + "' -o $(BIN)/weir ./cmd/weir"
	if !strings.Contains(text, want) {
		t.Errorf("the Makefile does not have %q", want)
	}
}

// variable returns the value of one of a makefile.
func variable(t *testing.T, makefile, name string) string {
	for line := range strings.Lines(makefile) {
		if value, ok := strings.CutPrefix(line, name+" := "); ok {
			return strings.TrimSpace(value)
		}
	}
	t.Fatalf("the Makefile does not set %s", name)
	return ""
}
