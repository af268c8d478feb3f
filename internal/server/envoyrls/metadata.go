package envoyrls

import (
	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

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
