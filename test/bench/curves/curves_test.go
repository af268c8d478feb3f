package curves

import (
	"bytes"
	"encoding/xml"
	"io"
	"testing"
	"time"

	"github.com/weirhq/weir/test/bench/internal/bench"
)

func TestRun(t *testing.T) {
	r := bench.Test(t)
	run(r, options{
		keys: []int{1, 10, 100}, redisKeys: []int{10}, rules: []int{1, 10}, callers: []int{1, 4}, limits: []int{1, 16}, costs: []int{1, 10_000},
		round: time.Millisecond, rounds: 1,
	})
	table := r.File("curves.txt")
	for _, g := range growths {
		if !bytes.Contains(table.Bytes(), []byte("## "+g.title)) {
			t.Errorf("no table for %s in\n%s", g.title, table)
		}
		for d := xml.NewDecoder(r.File(g.file)); ; {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", g.file, err)
			}
		}
	}
}
