package envoy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// domain is a configuration to be made up, with what its requests may have.
type domain struct {
	name  string
	units []string

	// overrides are limits that requests bring. They go on with the counters of the
	// file, which makes the differences visible that there are in those, so that such a
	// domain has limits and costs between which there are none, and one unit: the other
	// service has one counter for two units while their windows begin at one instant,
	// that is at times.
	overrides bool

	paths [][]part // to all descriptors of the file
}

// part is a descriptor of the file on the way to another.
type part struct{ key, value string }

// length is how long the shortest window is: an edge must not fall into a round.
func (d *domain) length() time.Duration {
	switch {
	case slices.Contains(d.units, "second"):
		return time.Second
	case slices.Contains(d.units, "minute"):
		return time.Minute
	}
	return time.Hour
}

var (
	keys     = []string{"a", "b", "c", "generic-key"}
	values   = []string{"", "x", "xy", "xyz", "x_y", "q", "ä|=\\", "1"}
	patterns = []string{"x*", "xy*", "*"}
	limits   = []string{"one", "two", "three"}
)

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func chance(r *rand.Rand, percent int) bool { return r.IntN(100) < percent }

// file writes a configuration.
func (d *domain) file(r *rand.Rand) string {
	var b strings.Builder
	fmt.Fprintf(&b, "domain: %s\ndescriptors:\n", d.name)
	d.descriptors(r, &b, nil)
	return b.String()
}

func (d *domain) descriptors(r *rand.Rand, b *strings.Builder, above []part) {
	indent := strings.Repeat("    ", len(above))
	used := map[string]bool{}
	for range 2 + r.IntN(4) {
		key, value := pick(r, keys), pick(r, values)
		pattern := chance(r, 25)
		if pattern {
			value = pick(r, patterns)
		}
		if used[key+"_"+value] {
			continue
		}
		used[key+"_"+value] = true
		fmt.Fprintf(b, "%s  - key: %s\n", indent, key)
		if value != "" {
			fmt.Fprintf(b, "%s    value: '%s'\n", indent, value)
		}
		if pattern && chance(r, 40) {
			fmt.Fprintf(b, "%s    share_threshold: true\n", indent)
		}
		if chance(r, 75) {
			d.limit(r, b, indent)
		}
		path := append(slices.Clone(above), part{key, value})
		d.paths = append(d.paths, path)
		if len(path) < 3 && chance(r, 45) {
			fmt.Fprintf(b, "%s    descriptors:\n", indent)
			d.descriptors(r, b, path)
		}
	}
}

func (d *domain) limit(r *rand.Rand, b *strings.Builder, indent string) {
	for _, flag := range []string{"shadow_mode", "quota_mode", "detailed_metric", "value_to_metric"} {
		if chance(r, 15) {
			fmt.Fprintf(b, "%s    %s: true\n", indent, flag)
		}
	}
	fmt.Fprintf(b, "%s    rate_limit:\n", indent)
	name := ""
	if chance(r, 40) {
		name = pick(r, limits)
		fmt.Fprintf(b, "%s      name: %s\n", indent, name)
	}
	if other := pick(r, limits); other != name && chance(r, 20) {
		fmt.Fprintf(b, "%s      replaces: [{name: %s}]\n", indent, other)
	}
	if chance(r, 10) {
		fmt.Fprintf(b, "%s      unlimited: true\n", indent)
		return
	}
	n := r.IntN(8)
	if d.overrides {
		n = 3 + r.IntN(6)
	}
	unit := pick(r, d.units)
	if chance(r, 30) {
		unit = strings.ToUpper(unit)
	}
	fmt.Fprintf(b, "%s      unit: %s\n%s      requests_per_unit: %d\n", indent, unit, indent, n)
}

// request makes up a request.
func (d *domain) request(r *rand.Rand) *pb.RateLimitRequest {
	req := &pb.RateLimitRequest{Domain: d.name}
	if chance(r, 3) {
		req.Domain = "nobody's"
	}
	if chance(r, 30) && !d.overrides {
		req.HitsAddend = uint32(r.IntN(5))
	}
	seen := map[string]bool{}
	for range 1 + r.IntN(4) {
		desc := &common.RateLimitDescriptor{}
		desc.Entries = d.entries(r)
		if list := fmt.Sprint(desc.Entries); d.overrides && seen[list] {
			continue
		} else {
			seen[list] = true
		}
		d.extras(r, desc)
		req.Descriptors = append(req.Descriptors, desc)
	}
	return req
}

// entries are mostly some that lead to a descriptor of the file, and at times any.
func (d *domain) entries(r *rand.Rand) (entries []*common.RateLimitDescriptor_Entry) {
	if chance(r, 80) {
		for _, p := range pick(r, d.paths) {
			value := p.value
			switch prefix, found := strings.CutSuffix(value, "*"); {
			case found:
				value = prefix + pick(r, values)
			case value == "":
				value = pick(r, values)
			}
			entries = append(entries, &common.RateLimitDescriptor_Entry{Key: p.key, Value: value})
		}
	}
	if len(entries) == 0 || chance(r, 5) {
		for range 1 + r.IntN(3) {
			entries = append(entries, &common.RateLimitDescriptor_Entry{Key: pick(r, keys), Value: pick(r, values)})
		}
	}
	return entries
}

// extras are what a descriptor may bring besides its entries.
func (d *domain) extras(r *rand.Rand, desc *common.RateLimitDescriptor) {
	if d.overrides {
		if chance(r, 40) {
			unit := typev3.RateLimitUnit_value[strings.ToUpper(pick(r, d.units))] // not a week, which has no name here
			desc.Limit = &common.RateLimitDescriptor_RateLimitOverride{
				RequestsPerUnit: 3 + uint32(r.IntN(6)), Unit: typev3.RateLimitUnit(unit),
			}
		}
		return
	}
	if chance(r, 25) {
		desc.HitsAddend = wrapperspb.UInt64(1 + uint64(r.IntN(12)))
	}
}
