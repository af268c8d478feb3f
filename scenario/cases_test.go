package scenario_test

import (
	"context"
	"io/fs"
	"testing"

	"github.com/weirhq/weir/scenario"
)

func TestCasesOnArithmetic(t *testing.T) {
	files, err := fs.Glob(scenario.Cases, "cases/*.txt")
	if err != nil || len(files) < 30 {
		t.Fatalf("found %d cases, %v", len(files), err)
	}
	for _, file := range files {
		src, err := scenario.Cases.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		script, err := scenario.Parse(file, src)
		if err != nil {
			t.Fatal(err)
		}
		if err := script.Run(context.Background(), scenario.NewModel().Subject()); err != nil {
			t.Error(err)
		}
	}
}
