package envoy

import (
	"fmt"
	"os"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/json_to_metadata/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	config "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// unwrapped calls visit with a message and all that are inside, also those that are wrapped.
func unwrapped(t *testing.T, m proto.Message, visit func(proto.Message)) {
	t.Helper()
	if wrapped, ok := m.(*anypb.Any); ok {
		inner, err := wrapped.UnmarshalNew()
		if err != nil {
			t.Fatal(err)
		}
		unwrapped(t, inner, visit)
		return
	}
	visit(m)
	m.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap():
			if f.MapValue().Message() != nil {
				v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
					unwrapped(t, v.Message().Interface(), visit)
					return true
				})
			}
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				unwrapped(t, v.List().Get(i).Message().Interface(), visit)
			}
		default:
			unwrapped(t, v.Message().Interface(), visit)
		}
		return true
	})
}

// perRoute validates all of a part of an example, and returns what it says of rate limits by route.
func perRoute(t *testing.T, what string, value any, into validated) (limits []*routev3.RateLimit) {
	t.Helper()
	understand(t, what, value, into)
	unwrapped(t, into, func(m proto.Message) {
		if v, ok := m.(validated); ok {
			if err := v.ValidateAll(); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		if r, ok := m.(*ratelimitv3.RateLimitPerRoute); ok {
			limits = r.RateLimits
		}
	})
	return limits
}

// asked is what Envoy asks of a list of actions for a request with some headers.
func asked(t *testing.T, domain string, l *routev3.RateLimit, headers map[string]string, used uint64) *pb.RateLimitRequest {
	t.Helper()
	d := &common.RateLimitDescriptor{}
	for _, a := range l.Actions {
		e := &common.RateLimitDescriptor_Entry{}
		switch {
		case a.GetGenericKey() != nil:
			e.Key, e.Value = a.GetGenericKey().DescriptorKey, a.GetGenericKey().DescriptorValue
		case a.GetRequestHeaders() != nil:
			e.Key, e.Value = a.GetRequestHeaders().DescriptorKey, headers[a.GetRequestHeaders().HeaderName]
		default:
			t.Fatalf("this test does not know the action %v", a)
		}
		d.Entries = append(d.Entries, e)
	}
	switch h := l.HitsAddend; {
	case h.GetFormat() != "":
		d.HitsAddend = wrapperspb.UInt64(used)
	case h != nil:
		d.HitsAddend = h.Number
	}
	return &pb.RateLimitRequest{Domain: domain, Descriptors: []*common.RateLimitDescriptor{d}}
}

// reserveAndSettle sends the two calls of each request as Envoy does, and compares what is left.
func reserveAndSettle(t *testing.T, limits pb.RateLimitServiceClient, domain string, begins, ends *routev3.RateLimit) {
	t.Helper()
	const all, reserved = 5_000_000, 4_000
	if begins == nil || ends == nil || begins.ApplyOnStreamDone || !ends.ApplyOnStreamDone || ends.HitsAddend.GetFormat() == "" {
		t.Fatalf("%v and %v are not the calls before and after a request", begins, ends)
	}
	for n := 0; ; n++ { // again if a month ended meanwhile
		user := fmt.Sprint("alice", n)
		last, whole := int64(1<<62), true
		call := func(l *routev3.RateLimit, id string, used uint64) *pb.RateLimitResponse {
			r, err := limits.ShouldRateLimit(t.Context(), asked(t, domain, l, map[string]string{"x-user": user, "x-user-id": user, "x-request-id": id}, used))
			if err != nil || r.OverallCode != pb.RateLimitResponse_OK {
				t.Fatalf("%v, %v", r, err)
			}
			if until := r.Statuses[0].GetDurationUntilReset(); until != nil {
				whole = whole && until.Seconds <= last
				last = until.Seconds
			}
			return r
		}
		var left []uint32
		for _, id := range []string{"1", "2"} {
			left = append(left, call(begins, id, 0).Statuses[0].LimitRemaining)
		}
		call(ends, "2", 1_500)
		call(ends, "1", 9_000)
		left = append(left, call(begins, "3", 0).Statuses[0].LimitRemaining)
		if !whole {
			continue
		}
		if got, want := fmt.Sprint(left), fmt.Sprint([]uint32{all - reserved, all - 2*reserved, all - 1_500 - 9_000 - reserved}); got != want {
			t.Errorf("there are %s left, want %s", got, want)
		}
		return
	}
}

// What the guide tells Envoy to ask before and after a request reserves and settles in weir.
func TestExampleOfHolds(t *testing.T) {
	var whole map[string]any
	readYAML(t, "models-envoy.yaml", &whole)
	rates := perRoute(t, "models-envoy.yaml", whole, new(bootstrapv3.Bootstrap))
	if len(rates) != 2 {
		t.Fatalf("models-envoy.yaml has %d rate limits, want 2", len(rates))
	}
	w := serve(t, "--envoy-config", "../../../examples/envoy/config", "--envoy-require-config")
	reserveAndSettle(t, w.limits, "models", rates[0], rates[1])

	var istio struct {
		Spec struct {
			ConfigPatches []struct {
				ApplyTo string `yaml:"applyTo"`
				Patch   struct {
					Value map[string]any `yaml:"value"`
				} `yaml:"patch"`
			} `yaml:"configPatches"`
		} `yaml:"spec"`
	}
	readYAML(t, "models-istio.yaml", &istio)
	patched := 0
	for _, p := range istio.Spec.ConfigPatches {
		switch p.ApplyTo {
		case "HTTP_FILTER":
			perRoute(t, "models-istio.yaml: a filter", p.Patch.Value, &hcmv3.HttpFilter{})
		case "HTTP_ROUTE":
			p.Patch.Value["match"], p.Patch.Value["route"] = map[string]any{"prefix": "/"}, map[string]any{"cluster": "patched"}
			same := perRoute(t, "models-istio.yaml: a route", p.Patch.Value, &routev3.Route{})
			for i := range rates {
				if len(same) != len(rates) || !proto.Equal(same[i], rates[i]) {
					t.Errorf("models-istio.yaml asks %v, want %v", same, rates)
				}
			}
			patched++
		}
	}
	if len(istio.Spec.ConfigPatches) != 3 || patched != 1 {
		t.Error("some patches were not found")
	}
}

// What Envoy Gateway makes of the policy in the guide reserves and settles in weir, with the flags that the guide gives. How
// it names the descriptors is in its internal/xds/translator/ratelimit.go.
func TestExampleOfHoldsByXDS(t *testing.T) {
	var policy struct {
		Spec struct {
			RateLimit struct {
				Global struct {
					Rules []struct {
						ClientSelectors []struct {
							Headers []struct{ Type, Name string }
						} `yaml:"clientSelectors"`
						Limit struct {
							Requests uint32
							Unit     string
						}
						Cost struct {
							Request  struct{ Number *uint64 }
							Response struct {
								Metadata struct{ Namespace, Key string }
							}
						}
					}
				}
			} `yaml:"rateLimit"`
		}
	}
	readYAML(t, "models-ai-gateway.yaml", &policy)
	if len(policy.Spec.RateLimit.Global.Rules) != 1 {
		t.Fatal("there is not one rule")
	}
	rule := policy.Spec.RateLimit.Global.Rules[0]
	route := &routev3.RateLimit_Action{ActionSpecifier: &routev3.RateLimit_Action_GenericKey_{GenericKey: &routev3.RateLimit_Action_GenericKey{DescriptorKey: "route", DescriptorValue: "route"}}}
	actions := []*routev3.RateLimit_Action{route}
	top := &config.RateLimitDescriptor{Key: "route", Value: "route"}
	at := top
	for i, h := range rule.ClientSelectors[0].Headers {
		key := fmt.Sprintf("rule-0-match-%d", i)
		actions = append(actions, &routev3.RateLimit_Action{ActionSpecifier: &routev3.RateLimit_Action_RequestHeaders_{
			RequestHeaders: &routev3.RateLimit_Action_RequestHeaders{HeaderName: h.Name, DescriptorKey: key},
		}})
		next := &config.RateLimitDescriptor{Key: key}
		at.Descriptors, at = []*config.RateLimitDescriptor{next}, next
	}
	unit := config.RateLimitUnit(config.RateLimitUnit_value[strings.ToUpper(rule.Limit.Unit)])
	at.RateLimit = &config.RateLimitPolicy{Unit: unit, RequestsPerUnit: rule.Limit.Requests}

	source, err := os.ReadFile("../../../examples/envoy/models-ai-gateway.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, flags, _ := strings.Cut(string(source), "#   --envoy-hold")
	flags, _, _ = strings.Cut("--envoy-hold"+flags, "\n")
	p := newPlane(t)
	p.up()
	p.set("1", &config.RateLimitConfig{Name: "listener", Domain: "listener", Descriptors: []*config.RateLimitDescriptor{top}})
	w := serve(t, append([]string{"--envoy-xds", p.address, "--envoy-xds-node-id", node}, strings.Fields(flags)...)...)
	w.await(t, "weir is ready", func() bool { return w.status(t, "/readyz") == 200 })
	metadata := rule.Cost.Response.Metadata
	reserveAndSettle(t, w.limits, "listener",
		&routev3.RateLimit{Actions: actions, HitsAddend: &routev3.RateLimit_HitsAddend{Number: wrapperspb.UInt64(*rule.Cost.Request.Number)}},
		&routev3.RateLimit{Actions: actions, ApplyOnStreamDone: true, HitsAddend: &routev3.RateLimit_HitsAddend{
			Format: fmt.Sprintf("%%DYNAMIC_METADATA(%s:%s)%%", metadata.Namespace, metadata.Key),
		}})
}
