package start

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

func TestRun(t *testing.T) {
	r, o := bench.Test(t), options{rules: 3, keys: 50_000, rounds: 1, idle: time.Millisecond}
	run(r, o)
	own := map[string]float64{}
	for _, row := range regexp.MustCompile(`(?m)^\| (.*?) +\| +\d+ \| +([\d.]+) \| +([\d.]+) \|$`).FindAllStringSubmatch(r.File("start.txt").String(), -1) {
		resident := testkit.Must(strconv.ParseFloat(row[2], 64))(t)
		if own[row[1]] = testkit.Must(strconv.ParseFloat(row[3], 64))(t); own[row[1]] <= 0 || own[row[1]] >= resident {
			t.Errorf("%s", row[0])
		}
	}
	// What was saved is really read: 50,000 keys are 2.4 MB or more.
	if few, many := own["one rule"], own["one rule, 50 000 keys"]; len(own) != 4 || many < few+1 {
		t.Errorf("%v MB with keys, %v without, in\n%s", many, few, r.File("start.txt"))
	}
}
