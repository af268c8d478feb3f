package envoy

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

var unitLine = regexp.MustCompile(`(?m)^ *unit: (\S+)$`)

// Only a limit that a request brings can meet another one on its counter, and then the
// two have the same unit. So the comparison holds at any time of the day: the counters
// of the other service do not tell units apart whose windows begin at one instant.
func TestLimitsOnACounterHaveOneUnit(t *testing.T) {
	brought := map[string]bool{}
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		all, files := makeDomains(r)
		for _, d := range all {
			units := map[string]bool{}
			for _, line := range unitLine.FindAllStringSubmatch(files[d.name+".yaml"], -1) {
				units[strings.ToUpper(line[1])] = true
			}
			none := true
			for range rounds * requests {
				for _, desc := range d.request(r).Descriptors {
					if desc.Limit != nil {
						none = false
						units[desc.Limit.Unit.String()] = true
						brought[desc.Limit.Unit.String()] = true
					}
				}
			}
			if len(units) > 1 && !none {
				t.Fatalf("seed %d: limits of the units %v may meet in\n%s", seed, units, files[d.name+".yaml"])
			}
		}
	}
	if len(brought) != 4 {
		t.Errorf("requests brought limits of the units %v only", brought)
	}
}
