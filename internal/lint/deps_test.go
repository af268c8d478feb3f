package lint

import (
	"os/exec"
	"strings"
	"testing"
)

// A program that limits by address, header or user compiles nothing but weir and the standard
// library, and of weir nothing that reads YAML or follows a file.
func TestHTTPLimitIsSmall(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "github.com/weirhq/weir/middleware/httplimit")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	found := strings.Fields(string(out))
	if len(found) < 5 {
		t.Errorf("it imports only %q", found)
	}
	for _, dep := range found {
		own, isWeir := strings.CutPrefix(dep+"/", "github.com/weirhq/weir/")
		switch {
		case !isWeir:
			t.Errorf("middleware/httplimit needs %s", dep)
		case strings.HasPrefix(own, "internal/rules/"), own == "rule/rulefile/", own == "internal/watch/":
			t.Errorf("middleware/httplimit needs %s, which is for rules in files", dep)
		}
	}
}
