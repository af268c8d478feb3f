package envoyrls

import (
	"math"
	"strconv"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirhq/weir"
)

// statusMemory is what the answer to one descriptor needs, so that it takes one allocation.
type statusMemory struct {
	status pb.RateLimitResponse_DescriptorStatus
	limit  pb.RateLimitResponse_RateLimit
	reset  durationpb.Duration
}

// single is memory for the usual answer, to one descriptor.
type single struct {
	response pb.RateLimitResponse
	memory   [1]statusMemory
	statuses [1]*pb.RateLimitResponse_DescriptorStatus
}

// answer writes down what has become of a request.
func (s *Service) answer(w *work, req *pb.RateLimitRequest) *pb.RateLimitResponse {
	var response *pb.RateLimitResponse
	var memories []statusMemory
	if len(w.items) == 1 {
		one := new(single)
		response, memories = &one.response, one.memory[:]
		response.Statuses = one.statuses[:]
	} else {
		response, memories = new(pb.RateLimitResponse), make([]statusMemory, len(w.items))
		response.Statuses = make([]*pb.RateLimitResponse_DescriptorStatus, len(w.items))
	}
	for i := range w.items {
		s.describe(&w.items[i], &memories[i])
		response.Statuses[i] = &memories[i].status
	}
	response.OverallCode = pb.RateLimitResponse_OK
	if (w.over || w.quotaOver) && !s.options.GlobalShadow {
		response.OverallCode = pb.RateLimitResponse_OVER_LIMIT
	}
	if s.options.ResponseHeaders {
		response.ResponseHeadersToAdd = s.headers(w, response.Statuses)
	}
	if s.options.DynamicMetadata {
		response.DynamicMetadata = metadata(w, req)
	}
	return response
}

// describe writes down what has become of a descriptor. A quota that is used up is over its limit,
// also if the request is not denied.
func (s *Service) describe(it *item, p *statusMemory) {
	p.status.Code = pb.RateLimitResponse_OK
	switch {
	case it.node == nil:
		return
	case it.node.Unlimited:
		p.status.LimitRemaining = math.MaxUint32
		return
	case !it.asked && !it.failed:
		return // the store is unavailable and the limit is open: nothing is known of it
	}
	limit := &it.node.Limits[it.speaker]
	p.limit.Name, p.limit.RequestsPerUnit = limit.Name, limit.N
	p.limit.Unit = pb.RateLimitResponse_RateLimit_Unit(limit.Unit)
	if limit.Multiplier > 0 {
		p.limit.UnitMultiplier = wrapperspb.UInt32(limit.Multiplier)
	}
	p.status.CurrentLimit = &p.limit
	if !it.over {
		p.status.LimitRemaining = uint32(max(0, min(it.remaining, math.MaxUint32)))
	} else if !it.node.Shadow {
		p.status.Code = pb.RateLimitResponse_OVER_LIMIT
	}
	if it.failed {
		return // it is unknown
	}
	p.reset.Seconds = s.reset(it)
	p.status.DurationUntilReset = &p.reset
}

// reset is when there is room again, or everything is fully reset, in whole seconds,
// rounded up. For a fixed window both is when it ends.
func (s *Service) reset(it *item) int64 {
	limit := &it.node.Limits[it.speaker]
	after := it.reset
	switch {
	case limit.Algorithm == weir.FixedWindow && after == 0:
		// Nothing of this window is used, so the store knows of none.
		now := s.options.Clock()
		after = time.Duration(limit.EndOf(now)-now) * time.Microsecond
	case limit.Algorithm != weir.FixedWindow && it.over && it.retry == weir.Never:
		after = limit.Period
	case limit.Algorithm != weir.FixedWindow && it.over:
		after = it.retry
	}
	return int64((after + time.Second - 1) / time.Second)
}

// headers tell the client of the limit that has the least left; one that denies the
// request by itself goes before all others, and the last of those before the first.
func (s *Service) headers(w *work, statuses []*pb.RateLimitResponse_DescriptorStatus) []*core.HeaderValue {
	tightest, least := -1, uint32(math.MaxUint32)
	for i, st := range statuses {
		if st.CurrentLimit == nil {
			continue
		}
		if st.LimitRemaining < least {
			tightest, least = i, st.LimitRemaining
		}
		if st.Code == pb.RateLimitResponse_OVER_LIMIT && !w.items[i].quota {
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

// metadata says what was asked, and which quotas are used up. What the files say of the
// descriptors that were found comes with it, and yields to what is said here.
func metadata(w *work, req *pb.RateLimitRequest) *structpb.Struct {
	fields := map[string]*structpb.Value{}
	enabled := false
	var used []*structpb.Value
	for i := range w.items {
		it := &w.items[i]
		if it.node == nil {
			continue
		}
		for name, value := range it.node.Metadata {
			if v, err := structpb.NewValue(value); err == nil {
				fields[name] = v
			}
		}
		enabled = enabled || it.node.Quota && !it.node.Unlimited
		if it.quota && it.over {
			used = append(used, structpb.NewNumberValue(float64(i)))
		}
	}
	descriptors := make([]*structpb.Value, len(req.GetDescriptors()))
	for i, d := range req.GetDescriptors() {
		descriptors[i] = structpb.NewStructValue(describeDescriptor(d))
	}
	fields["domain"] = structpb.NewStringValue(req.GetDomain())
	fields["descriptors"] = structpb.NewListValue(&structpb.ListValue{Values: descriptors})
	if hits := req.GetHitsAddend(); hits != 0 {
		fields["hitsAddend"] = structpb.NewNumberValue(float64(hits))
	}
	if used != nil {
		fields["quotaModeViolations"] = structpb.NewListValue(&structpb.ListValue{Values: used})
	}
	fields["quotaModeEnabled"] = structpb.NewBoolValue(enabled)
	if w.verdict.Degraded != nil && len(w.demands) > 0 {
		fields["degraded"] = structpb.NewBoolValue(true)
	}
	return &structpb.Struct{Fields: fields}
}

func describeDescriptor(d *common.RateLimitDescriptor) *structpb.Struct {
	entries := make([]*structpb.Value, len(d.GetEntries()))
	for i, e := range d.GetEntries() {
		entries[i] = structpb.NewStringValue(e.GetKey() + "=" + e.GetValue())
	}
	fields := map[string]*structpb.Value{"entries": structpb.NewListValue(&structpb.ListValue{Values: entries})}
	if d.GetLimit() != nil {
		fields["limit"] = structpb.NewStringValue(d.GetLimit().String())
	}
	if hits := d.GetHitsAddend(); hits != nil {
		fields["hitsAddend"] = structpb.NewNumberValue(float64(hits.GetValue()))
	}
	return &structpb.Struct{Fields: fields}
}
