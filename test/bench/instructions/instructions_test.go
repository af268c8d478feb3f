package instructions

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

// Beside itself, weir takes as many instructions: all but what the time and Lua's collector make of it.
func TestRun(t *testing.T) {
	r := bench.Test(t)
	r.Beside = "../../.."
	run(r, 40, "token_bucket:")
	text := r.File("instructions.txt").String()
	rows := regexp.MustCompile(`(?m)^\| .* \|\s+(\d\.\d\d) \|\s+(\d\.\d\d) \|\s+\d\.\d\d \|\s+\d\.\d\d \|$`).FindAllStringSubmatch(text, -1)
	if len(rows) != 1 {
		t.Errorf("%d rows in\n%s", len(rows), text)
	}
	for _, row := range rows {
		for _, ratio := range row[1:] {
			if x := testkit.Must(strconv.ParseFloat(ratio, 64))(t); x < 0.3 || x > 3 {
				t.Errorf("the same takes %s times as much: %s", ratio, row[0])
			}
		}
	}
}
