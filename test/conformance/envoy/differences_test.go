package envoy

import (
	"strings"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// difference is something that weir answers otherwise on purpose. It is applied to what
// the other service says, so that what remains must be equal.
type difference struct {
	reason string
	apply  func(theirs, ours *pb.RateLimitResponse)
}

// differences are all of them that show in an answer. Those that show in a sequence of
// requests are tests of their own; see TestWanted.
var differences = []difference{
	{
		// A later version of the other service does so, too. The published module
		// always lets the request pass.
		"a quota that is used up is over its limit, and a request is denied when all of its quotas are",
		func(theirs, ours *pb.RateLimitResponse) {
			used := usedQuotas(theirs)
			for _, i := range used {
				theirs.Statuses[i].Code = pb.RateLimitResponse_OVER_LIMIT
				theirs.Statuses[i].DurationUntilReset = ours.Statuses[i].DurationUntilReset
			}
			if len(used) > 0 {
				theirs.OverallCode = ours.OverallCode // OK if everything is a shadow
				theirs.ResponseHeadersToAdd = ours.ResponseHeadersToAdd
			}
		},
	},
	{
		"the text of a message is not the same twice, by intention of its library",
		func(theirs, ours *pb.RateLimitResponse) {
			for _, r := range []*pb.RateLimitResponse{theirs, ours} {
				for _, d := range r.GetDynamicMetadata().GetFields()["descriptors"].GetListValue().GetValues() {
					if limit := d.GetStructValue().GetFields()["limit"]; limit != nil {
						text := strings.Join(strings.Fields(limit.GetStringValue()), " ")
						d.GetStructValue().Fields["limit"] = structpb.NewStringValue(text)
					}
				}
			}
		},
	},
}

// usedQuotas are the descriptors whose quota is used up. The other service tells no end
// of the window of these, and of no others that have a limit.
func usedQuotas(theirs *pb.RateLimitResponse) (used []int) {
	for i, st := range theirs.Statuses {
		if st.CurrentLimit != nil && st.DurationUntilReset == nil {
			used = append(used, i)
		}
	}
	return used
}
