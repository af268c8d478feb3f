package envoy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const wantedFile = `
domain: wanted
descriptors:
  - key: user
    rate_limit: {unit: year, requests_per_unit: 2}
  - key: a
    descriptors:
      - key: b
        rate_limit: {unit: year, requests_per_unit: 2}
  - key: m
    value: a*c
    rate_limit: {unit: year, requests_per_unit: 2}
  - key: a_b
    descriptors:
      - key: b
        rate_limit: {unit: year, requests_per_unit: 2}
`

// descriptor is one of entries as in "a=1,b=2".
func descriptor(list string) *common.RateLimitDescriptor {
	d := &common.RateLimitDescriptor{}
	for pair := range strings.SplitSeq(list, ",") {
		key, value, _ := strings.Cut(pair, "=")
		d.Entries = append(d.Entries, &common.RateLimitDescriptor_Entry{Key: key, Value: value})
	}
	return d
}

// costs is a descriptor with hits of its own.
func costs(list string, hits uint64) *common.RateLimitDescriptor {
	d := descriptor(list)
	d.HitsAddend = wrapperspb.UInt64(hits)
	return d
}

// brings is a descriptor with a limit of its own.
func brings(list string, n uint32, unit typev3.RateLimitUnit) *common.RateLimitDescriptor {
	d := descriptor(list)
	d.Limit = &common.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: n, Unit: unit}
	return d
}

// said is an answer in short: the code and what remains of each descriptor.
func said(r *pb.RateLimitResponse, err error) string {
	if err != nil {
		return status.Code(err).String()
	}
	var texts []string
	for _, st := range r.Statuses {
		texts = append(texts, fmt.Sprintf("%s %d", st.Code, st.LimitRemaining))
	}
	return strings.Join(texts, ", ")
}

// step is a request and what each of the two says to it.
type step struct {
	descriptors  []*common.RateLimitDescriptor
	theirs, ours string
}

func one(d *common.RateLimitDescriptor, theirs, ours string) step {
	return step{[]*common.RateLimitDescriptor{d}, theirs, ours}
}

// Each difference that shows in a sequence of requests is as docs/guides/envoy.md has it: if
// one goes away, there or here, the list has to be shortened.
func TestWanted(t *testing.T) {
	s := begin(t, map[string]string{"wanted.yaml": wantedFile}, settings{})
	for name, steps := range map[string][]step{
		"a look without hits says whether one more would pass": {
			one(costs("user=x", 2), "OK 0", "OK 0"),
			one(costs("user=x", 0), "OK 0", "OVER_LIMIT 0"),
		},
		"a look without hits sees what was before the request": {
			{[]*common.RateLimitDescriptor{descriptor("user=x"), costs("user=x", 0)}, "OK 1, OK 1", "OK 1, OK 2"},
		},
		"what is denied counts as the whole limit at most": {
			one(costs("user=x", 9), "OVER_LIMIT 0", "OVER_LIMIT 0"),
			one(brings("user=x", 12, typev3.RateLimitUnit_YEAR), "OK 2", "OK 9"),
		},
		"lists that look the same when joined have counters of their own": {
			one(descriptor("a=b_b,b=x"), "OK 1", "OK 1"),
			one(descriptor("a_b=b,b=x"), "OK 0", "OK 1"),
		},
		"a request that makes no sense is an invalid argument": {
			{nil, "Unknown", "InvalidArgument"},
		},
		"a star in the middle is one, as in later versions of the other service": {
			one(descriptor("m=abc"), "OK 0", "OK 1"),
		},
		// What follows ends the other service, so it is not asked.
		"a limit without a unit is an invalid argument": {
			one(brings("user=x", 1, typev3.RateLimitUnit_UNKNOWN), "", "InvalidArgument"),
		},
	} {
		t.Run(name, func(t *testing.T) { s.wanted(t, func(int64) []step { return steps }) })
	}
	// Their counters are named after the instant at which the window begins, and not
	// after its length.
	const (
		hour  = 3600
		day   = 24 * hour
		month = 30 * day
		year  = 365 * day
	)
	for unit, length := range map[typev3.RateLimitUnit]int64{
		typev3.RateLimitUnit_HOUR: hour, typev3.RateLimitUnit_DAY: day, typev3.RateLimitUnit_MONTH: month,
	} {
		t.Run("limits of two units have counters of their own: "+unit.String(), func(t *testing.T) {
			s.wanted(t, func(now int64) []step {
				theirs := "OK 4"
				if now-now%length == now-now%year {
					theirs = "OK 3"
				}
				return []step{one(descriptor("user=x"), "OK 1", "OK 1"), one(brings("user=x", 5, unit), theirs, "OK 4")}
			})
		})
	}
}

// wanted asks both within an hour: all windows here begin at a full one.
func (s *sides) wanted(t *testing.T, at func(now int64) []step) {
	for {
		s.forget()
		now := time.Now().Unix()
		var wrong []string
		for _, step := range at(now) {
			req := &pb.RateLimitRequest{Domain: "wanted", Descriptors: step.descriptors}
			if step.theirs != "" {
				if got := said(s.theirs.ShouldRateLimit(t.Context(), req)); got != step.theirs {
					wrong = append(wrong, fmt.Sprintf("%v: they say %s, want %s", req, got, step.theirs))
				}
			}
			if got := said(s.ours.ShouldRateLimit(t.Context(), req)); got != step.ours {
				wrong = append(wrong, fmt.Sprintf("%v: we say %s, want %s", req, got, step.ours))
			}
		}
		if time.Now().Unix()/3600 != now/3600 {
			continue
		}
		if wrong != nil {
			t.Error(strings.Join(wrong, "\n"))
		}
		return
	}
}
