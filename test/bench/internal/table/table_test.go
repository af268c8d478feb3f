package table

import (
	"strings"
	"testing"
)

func TestWrite(t *testing.T) {
	var b strings.Builder
	err := Write(&b, []string{"who", "ns", "<why"}, [][]string{{"a", "1", "short"}, {"bé", "1 000", "x"}})
	if err != nil {
		t.Fatal(err)
	}
	want := `
| who |    ns | why   |
|-----|------:|-------|
| a   |     1 | short |
| bé  | 1 000 | x     |
`
	if b.String() != want[1:] {
		t.Errorf("got\n%s", b.String())
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1 000", 1234567: "1 234 567"} {
		if got := Count(n); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}
