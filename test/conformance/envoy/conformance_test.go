package envoy

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir/internal/server/envoyrls"
)

const (
	domains  = 24
	rounds   = 2  // of each domain
	requests = 80 // of a round; fewer where windows are short
)

// Thousands of requests to made-up configurations are answered the same in every field,
// but for the differences that are wanted.
func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name string
		settings
	}{
		{"plain", settings{}},
		{"headers and metadata", settings{
			theirs: []string{"LIMIT_RESPONSE_HEADERS_ENABLED=true", "RESPONSE_DYNAMIC_METADATA=true"},
			ours:   envoyrls.Options{ResponseHeaders: true, DynamicMetadata: true},
		}},
		{"shadow mode", settings{
			theirs: []string{"SHADOW_MODE=true", "LIMIT_RESPONSE_HEADERS_ENABLED=true", "LIMIT_RESET_HEADER=X-Reset", "RESPONSE_DYNAMIC_METADATA=true"},
			ours:   envoyrls.Options{GlobalShadow: true, ResponseHeaders: true, HeaderNames: envoyrls.HeaderNames{Reset: "X-Reset"}, DynamicMetadata: true},
		}},
		{"quota mode", settings{
			theirs: []string{"QUOTA_MODE=true", "RESPONSE_DYNAMIC_METADATA=true"},
			ours:   envoyrls.Options{GlobalQuota: true, DynamicMetadata: true},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			r := rand.New(rand.NewPCG(seed, 1))
			all, files := makeDomains(r)
			s := begin(t, files, c.settings)
			asked := 0
			var outcomes [3]int
			for _, d := range all {
				for range rounds {
					asked += s.round(t, r, d, &outcomes)
					if t.Failed() {
						t.Fatalf("the file:\n%s", files[d.name+".yaml"])
					}
				}
			}
			t.Logf("%d requests, of which %d passed and %d were denied", asked, outcomes[pb.RateLimitResponse_OK], outcomes[pb.RateLimitResponse_OVER_LIMIT])
			if passed := outcomes[pb.RateLimitResponse_OK]; asked < 1000 || passed < asked/20 || passed > asked*19/20 && !c.ours.GlobalShadow {
				t.Error("that proves little")
			}
		})
	}
}

func makeDomains(r *rand.Rand) ([]*domain, map[string]string) {
	var all []*domain
	files := map[string]string{}
	for i := range domains {
		d := &domain{name: "domain-" + strconv.Itoa(i), units: []string{"hour", "day", "week", "month", "year"}, overrides: i%3 == 1}
		switch {
		case d.overrides:
			d.units = []string{[]string{"hour", "day", "month", "year"}[i/3%4]}
		case i%8 == 6:
			d.units = append(d.units, "minute")
		case i%8 == 7:
			d.units = []string{"second"}
		}
		files[d.name+".yaml"] = d.file(r)
		all = append(all, d)
	}
	return all, files
}

// round sends requests to both, and returns how many there were. An answer into which the
// edge of a window fell says nothing: both begin again then, with the next request.
func (s *sides) round(t *testing.T, r *rand.Rand, d *domain, outcomes *[3]int) int {
	t.Helper()
	n := requests
	if d.length() < time.Minute {
		n = 6
	}
	for done := 0; done < n; {
		s.forget()
		for window := time.Now().Truncate(d.length()); done < n; done++ {
			code, diff := s.compare(t, d.request(r))
			if !time.Now().Truncate(d.length()).Equal(window) {
				break
			}
			if diff != "" {
				t.Error(diff)
				return done
			}
			outcomes[code]++
		}
	}
	return n
}

// compare asks both, and says what is different.
func (s *sides) compare(t *testing.T, req *pb.RateLimitRequest) (pb.RateLimitResponse_Code, string) {
	t.Helper()
	before := time.Now().Unix()
	theirs, err := s.theirs.ShouldRateLimit(t.Context(), req)
	if err != nil {
		t.Fatalf("theirs: %v\nfor %v\n%s", err, req, s.peer.Output())
	}
	ours, err := s.ours.ShouldRateLimit(t.Context(), req)
	if err != nil {
		t.Fatalf("ours: %v\nfor %v", err, req)
	}
	code := ours.OverallCode
	if elapsed := time.Now().Unix() - before; elapsed > 0 {
		resetSeconds(theirs, ours, elapsed)
	}
	for _, d := range differences {
		d.apply(theirs, ours)
	}
	if proto.Equal(theirs, ours) {
		return code, ""
	}
	text := func(m proto.Message) string { return prototext.MarshalOptions{Multiline: true}.Format(m) }
	return code, fmt.Sprintf("the request\n%s\nis to them\n%s\nand to us\n%s", text(req), text(theirs), text(ours))
}

// resetSeconds makes what is left of a window the same, if a second ended while the two
// were asked.
func resetSeconds(theirs, ours *pb.RateLimitResponse, elapsed int64) {
	for i, st := range theirs.Statuses {
		if a, b := st.DurationUntilReset, ours.Statuses[i].DurationUntilReset; a != nil && b != nil {
			if diff := a.Seconds - b.Seconds; 0 <= diff && diff <= elapsed {
				a.Seconds = b.Seconds
			}
		}
	}
	if len(theirs.ResponseHeadersToAdd) != 3 || len(ours.ResponseHeadersToAdd) != 3 {
		return
	}
	a, errA := strconv.ParseInt(theirs.ResponseHeadersToAdd[2].Value, 10, 64)
	b, errB := strconv.ParseInt(ours.ResponseHeadersToAdd[2].Value, 10, 64)
	if diff := a - b; errA == nil && errB == nil && 0 <= diff && diff <= elapsed {
		theirs.ResponseHeadersToAdd[2].Value = ours.ResponseHeadersToAdd[2].Value
	}
}
