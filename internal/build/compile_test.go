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
	want := "CGO_ENABLED=0 go build " + strings.Join(Flags[:last], " ") + " '" + Flags[last] + "' -pgo=" + profile + " -o $(BIN)/weir ./cmd/weir"
	if !strings.Contains(string(makefile), want) {
		t.Errorf("the Makefile does not have %q", want)
	}
}
