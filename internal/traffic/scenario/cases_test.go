package scenario_test

import (
	"testing"

	"github.com/weirhq/weir/internal/traffic/scenario"
)

func TestCasesOnArithmetic(t *testing.T) {
	cases, err := scenario.Cases()
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) < 30 {
		t.Fatalf("only %d cases were found", len(cases))
	}
	for _, script := range cases {
		if script.Answered() == 0 {
			t.Errorf("%s expects nothing", script.Name)
		}
		if err := script.Run(t.Context(), scenario.NewModel().Subject()); err != nil {
			t.Error(err)
		}
	}
}
