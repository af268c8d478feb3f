package envoy

import (
	"fmt"
	"syscall"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	config "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/test/conformance/envoy/peer"
)

// basic is what envoyproxy/ratelimit's own integration tests of xDS begin with.
func basic() []*config.RateLimitConfig {
	return []*config.RateLimitConfig{
		{Name: "basic", Domain: "basic", Descriptors: []*config.RateLimitDescriptor{
			limit("key1", config.RateLimitUnit_SECOND, 50), limit("key1_local", config.RateLimitUnit_SECOND, 50),
			limit("one_per_minute", config.RateLimitUnit_MINUTE, 1),
		}},
		{Name: "another", Domain: "another", Descriptors: []*config.RateLimitDescriptor{
			limit("key2", config.RateLimitUnit_MINUTE, 20), limit("key3", config.RateLimitUnit_HOUR, 10),
			limit("key2_local", config.RateLimitUnit_MINUTE, 20), limit("key3_local", config.RateLimitUnit_HOUR, 10),
			limit("key4", config.RateLimitUnit_DAY, 20), limit("key4_local", config.RateLimitUnit_DAY, 20),
		}},
	}
}

// xdsSides are both services with the same control plane.
type xdsSides struct {
	t            *testing.T
	plane        *plane
	theirs, ours pb.RateLimitServiceClient
	weir         *program
}

func beginXDS(t *testing.T, domains []*config.RateLimitConfig) *xdsSides {
	t.Helper()
	p := newPlane(t)
	p.up()
	p.set("1", domains...)
	root := t.TempDir()
	if _, err := peer.Layout(root); err != nil {
		t.Fatal(err)
	}
	theirs, err := peer.Start(t.Context(), programs, root, testredis.Start(t).Addr,
		"CONFIG_TYPE=GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_NODE_ID="+node, "CONFIG_GRPC_XDS_SERVER_URL="+p.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(theirs.Stop)
	w := serve(t, "--envoy-xds", p.address, "--envoy-xds-node-id", node)
	w.await(t, "weir is ready", func() bool { return w.status(t, "/readyz") == 200 })
	return &xdsSides{t, p, dial(t, theirs.GRPC), w.limits, w}
}

// descriptorStatus is what a descriptor is answered.
func descriptorStatus(code pb.RateLimitResponse_Code, n uint32, unit pb.RateLimitResponse_RateLimit_Unit, remaining uint32) *pb.RateLimitResponse_DescriptorStatus {
	return &pb.RateLimitResponse_DescriptorStatus{
		Code: code, LimitRemaining: remaining, CurrentLimit: &pb.RateLimitResponse_RateLimit{RequestsPerUnit: n, Unit: unit},
	}
}

// ask asks one side for a descriptor with one entry for each key.
func ask(t *testing.T, side pb.RateLimitServiceClient, domain, value string, keys ...string) *pb.RateLimitResponse {
	t.Helper()
	request := &pb.RateLimitRequest{Domain: domain, HitsAddend: 1}
	for _, key := range keys {
		request.Descriptors = append(request.Descriptors, &common.RateLimitDescriptor{Entries: []*common.RateLimitDescriptor_Entry{{Key: key, Value: value}}})
	}
	response, err := side.ShouldRateLimit(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// resets takes the times out of an answer, and returns the longest.
func resets(r *pb.RateLimitResponse) (longest *durationpb.Duration) {
	for _, s := range r.Statuses {
		if s.DurationUntilReset.AsDuration() > longest.AsDuration() {
			longest = s.DurationUntilReset
		}
		s.DurationUntilReset = nil
	}
	return longest
}

// series asks so often for some keys, and compares the answers. If a window ends meanwhile,
// it begins again with another client.
func series(t *testing.T, side pb.RateLimitServiceClient, value, domain string, n int, keys []string, want func(i int) *pb.RateLimitResponse) {
	t.Helper()
	for {
		value += "'"
		var answers []*pb.RateLimitResponse
		var before *durationpb.Duration
		whole := true
		for range n {
			answer := ask(t, side, domain, value, keys...)
			now := resets(answer)
			whole = whole && (before == nil || now.AsDuration() <= before.AsDuration())
			before = now
			answers = append(answers, answer)
		}
		if !whole {
			continue
		}
		for i, got := range answers {
			if w := want(i); !proto.Equal(got, w) {
				t.Errorf("request %d for %v is answered\n%v\nwant\n%v", i+1, keys, got, w)
			}
		}
		return
	}
}

// What envoyproxy/ratelimit's TestXdsProviderBasicConfig asks has the same answers here, but
// for its own statistics, which weir does not have.
func TestXDSBasicConfig(t *testing.T) {
	s := beginXDS(t, basic())
	const ok, over = pb.RateLimitResponse_OK, pb.RateLimitResponse_OVER_LIMIT
	const second, minute, hour, day = pb.RateLimitResponse_RateLimit_SECOND, pb.RateLimitResponse_RateLimit_MINUTE, pb.RateLimitResponse_RateLimit_HOUR, pb.RateLimitResponse_RateLimit_DAY
	used := func(i int, n uint32, unit pb.RateLimitResponse_RateLimit_Unit) *pb.RateLimitResponse_DescriptorStatus {
		if uint32(i) >= n {
			return descriptorStatus(over, n, unit, 0)
		}
		return descriptorStatus(ok, n, unit, n-uint32(i)-1)
	}
	for name, side := range map[string]pb.RateLimitServiceClient{"envoyproxy/ratelimit": s.theirs, "weir": s.ours} {
		t.Run(name, func(t *testing.T) {
			unknown := &pb.RateLimitResponse{OverallCode: ok, Statuses: []*pb.RateLimitResponse_DescriptorStatus{{Code: ok}}}
			if got := ask(t, side, "foo", "world", "hello"); !proto.Equal(got, unknown) {
				t.Errorf("of an unknown domain it says %v", got)
			}
			series(t, side, "foo", "basic", 1, []string{"key1"}, func(i int) *pb.RateLimitResponse {
				return &pb.RateLimitResponse{OverallCode: ok, Statuses: []*pb.RateLimitResponse_DescriptorStatus{used(i, 50, second)}}
			})
			series(t, side, "one", "another", 25, []string{"key2"}, func(i int) *pb.RateLimitResponse {
				one := used(i, 20, minute)
				return &pb.RateLimitResponse{OverallCode: one.Code, Statuses: []*pb.RateLimitResponse_DescriptorStatus{one}}
			})
			series(t, side, "two", "another", 15, []string{"key2", "key3"}, func(i int) *pb.RateLimitResponse {
				two := used(i, 10, hour)
				return &pb.RateLimitResponse{OverallCode: two.Code, Statuses: []*pb.RateLimitResponse_DescriptorStatus{used(i, 20, minute), two}}
			})
			series(t, side, "three", "another", 25, []string{"key4"}, func(i int) *pb.RateLimitResponse {
				one := used(i, 20, day)
				return &pb.RateLimitResponse{OverallCode: one.Code, Statuses: []*pb.RateLimitResponse_DescriptorStatus{one}}
			})
		})
	}
}

// What envoyproxy/ratelimit's TestXdsProviderBasicConfigReload asks, likewise.
func TestXDSConfigReload(t *testing.T) {
	s := beginXDS(t, basic())
	reload := &config.RateLimitConfig{Name: "reload", Domain: "reload", Descriptors: []*config.RateLimitDescriptor{
		limit("key1", config.RateLimitUnit_SECOND, 50), limit("block", config.RateLimitUnit_SECOND, 0), limit("one_per_minute", config.RateLimitUnit_MINUTE, 1),
	}}
	unlimited := &pb.RateLimitResponse{OverallCode: pb.RateLimitResponse_OK, Statuses: []*pb.RateLimitResponse_DescriptorStatus{{Code: pb.RateLimitResponse_OK}}}
	want := func(key string, want *pb.RateLimitResponse) {
		t.Helper()
		for name, side := range map[string]pb.RateLimitServiceClient{"envoyproxy/ratelimit": s.theirs, "weir": s.ours} {
			var got *pb.RateLimitResponse
			// Each takes a moment after it has been told.
			s.weir.await(t, name+" has what is expected", func() bool {
				got = ask(t, side, "reload", "foo", key)
				resets(got)
				return got.Statuses[0].CurrentLimit.GetRequestsPerUnit() == want.Statuses[0].CurrentLimit.GetRequestsPerUnit() &&
					(got.Statuses[0].CurrentLimit == nil) == (want.Statuses[0].CurrentLimit == nil)
			})
			got.Statuses[0].LimitRemaining = 0 // seconds go by
			if !proto.Equal(got, want) {
				t.Errorf("%s: %s is answered\n%v\nwant\n%v", name, key, got, want)
			}
		}
	}
	limited := func(code pb.RateLimitResponse_Code, n uint32) *pb.RateLimitResponse {
		return &pb.RateLimitResponse{OverallCode: code, Statuses: []*pb.RateLimitResponse_DescriptorStatus{descriptorStatus(code, n, pb.RateLimitResponse_RateLimit_SECOND, 0)}}
	}
	want("block", unlimited)
	s.plane.set("2", append(basic(), reload)...)
	want("key1", limited(pb.RateLimitResponse_OK, 50))
	want("block", limited(pb.RateLimitResponse_OVER_LIMIT, 0))
	s.plane.set("3", basic()...)
	want("key1", unlimited)
	want("block", unlimited)
}

// weir starts without a control plane, says who it is, takes only what is good, and keeps it
// whatever happens to the control plane or to itself.
func TestXDSLife(t *testing.T) {
	p := newPlane(t)
	data := t.TempDir()
	args := []string{"--envoy-xds", p.address, "--envoy-xds-node-id", node, "--envoy-xds-node-metadata", "zone=a,tier=b", "--data", data}
	w := serve(t, args...)
	answer := func() string {
		t.Helper()
		response, err := w.limits.ShouldRateLimit(t.Context(), &pb.RateLimitRequest{Domain: "edge", Descriptors: []*common.RateLimitDescriptor{{
			Entries: []*common.RateLimitDescriptor_Entry{{Key: "user", Value: "x"}},
		}}})
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(response.OverallCode, " of ", response.Statuses[0].CurrentLimit.GetRequestsPerUnit())
	}
	want := func(text string) {
		t.Helper()
		w.await(t, "the answer is "+text, func() bool { return answer() == text })
	}
	edge := func(n uint32) *config.RateLimitConfig {
		return &config.RateLimitConfig{Name: "edge", Domain: "edge", Descriptors: []*config.RateLimitDescriptor{limit("user", config.RateLimitUnit_YEAR, n)}}
	}
	bad := &config.RateLimitConfig{Name: "bad", Domain: "bad", Descriptors: []*config.RateLimitDescriptor{limit("user", 0, 1)}}

	want("rpc error: code = Unknown desc = no rate limit configuration loaded; weir's log says why")
	if got := w.status(t, "/readyz"); got != 503 {
		t.Errorf("without a configuration, /readyz is %d", got)
	}
	if got := w.status(t, "/healthcheck"); got != 500 {
		t.Errorf("without a configuration, /healthcheck is %d", got)
	}
	p.up()
	p.set("1", append(basic(), edge(1001))...)
	first := p.answer("request", func(*discovery.DiscoveryRequest) bool { return true })
	if first.Node.Id != node || first.Node.Metadata.AsMap()["zone"] != "a" || first.Node.Metadata.AsMap()["tier"] != "b" || first.VersionInfo != "" {
		t.Errorf("the first request is %v", first)
	}
	p.accepted("1")
	want("OK of 1001")
	if got := w.status(t, "/readyz"); got != 200 {
		t.Errorf("with a configuration, /readyz is %d", got)
	}

	// What is bad is rejected as a whole, although go-control-plane insists; then comes a good one.
	p.set("2", edge(1002), bad)
	rejection := p.answer("rejection", func(r *discovery.DiscoveryRequest) bool { return r.ErrorDetail != nil })
	if rejection.VersionInfo != "1" || rejection.ErrorDetail.Message != "bad: error: bad.user: unit: required; write second, minute, hour, day, week, month, year, or a period such as 10s" {
		t.Errorf("the rejection is %v", rejection)
	}
	want("OK of 1001")
	p.set("3", edge(1003))
	p.accepted("3")
	want("OK of 1003")

	// A control plane that is restarted begins its versions again.
	p.down()
	want("OK of 1003")
	p.up()
	p.set("3", edge(1004))
	want("OK of 1004")

	// weir is restarted while the control plane is down.
	p.down()
	if err := w.process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-w.process.Done()
	w = serve(t, args...)
	want("OK of 1004")
	if got := w.status(t, "/readyz"); got != 200 {
		t.Errorf("with a configuration from before, /readyz is %d", got)
	}
}
