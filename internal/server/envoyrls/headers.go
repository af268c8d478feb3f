package envoyrls

import (
	"math"
	"strconv"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// headers tell the client of the limit that has the least left; one that refuses the
// request goes before all others, and the last of those before the first.
func (s *Service) headers(w *work, statuses []*pb.RateLimitResponse_DescriptorStatus) []*core.HeaderValue {
	tightest, least := -1, uint32(math.MaxUint32)
	for i, st := range statuses {
		if st.CurrentLimit == nil {
			continue
		}
		if st.LimitRemaining < least {
			tightest, least = i, st.LimitRemaining
		}
		if st.Code == pb.RateLimitResponse_OVER_LIMIT {
			tightest, least = i, 0
		}
	}
	if tightest < 0 {
		return nil
	}
	st, names := statuses[tightest], s.options.HeaderNames
	return []*core.HeaderValue{
		{Key: names.Limit, Value: strconv.FormatUint(uint64(st.CurrentLimit.RequestsPerUnit), 10)},
		{Key: names.Remaining, Value: strconv.FormatUint(uint64(st.LimitRemaining), 10)},
		{Key: names.Reset, Value: strconv.FormatInt(s.reset(&w.items[tightest]), 10)},
	}
}
