package envoyxds

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	configv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/envoy/envoyconfig"
)

// wire is a response as it comes.
func wire(t testing.TB, r *discoveryv3.DiscoveryResponse) []byte {
	t.Helper()
	data, err := proto.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// understood is all that a configuration says.
func understood(c *envoyconfig.Config) string {
	text := dump(c)
	if c != nil {
		for n := range c.Nodes() {
			text += fmt.Sprintln(n.Path, n.Unlimited, n.Shadow, n.Quota, n.Replaces, n.Limits, n.Metadata)
		}
	}
	return text
}

// A resource means what the same words mean in a file.
func TestSameAsFile(t *testing.T) {
	word := rapid.SampledFrom([]string{"", "a", "b", "c", "a*", "日本", "x\x00y", "on"})
	policy := rapid.Custom(func(t *rapid.T) *configv3.RateLimitPolicy {
		p := &configv3.RateLimitPolicy{
			Unit:            configv3.RateLimitUnit(rapid.SampledFrom([]int32{0, 1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 42}).Draw(t, "unit")),
			RequestsPerUnit: rapid.SampledFrom([]uint32{0, 1, 10, math.MaxUint32}).Draw(t, "requests"),
			Unlimited:       rapid.IntRange(0, 5).Draw(t, "unlimited") == 0, Name: word.Draw(t, "name"),
		}
		for _, name := range rapid.SliceOfN(word, 0, 2).Draw(t, "replaces") {
			p.Replaces = append(p.Replaces, &configv3.RateLimitReplace{Name: name})
		}
		return p
	})
	var descriptors func(depth int) *rapid.Generator[[]*configv3.RateLimitDescriptor]
	descriptors = func(depth int) *rapid.Generator[[]*configv3.RateLimitDescriptor] {
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) *configv3.RateLimitDescriptor {
			d := &configv3.RateLimitDescriptor{
				Key: word.Draw(t, "key"), Value: word.Draw(t, "value"), ShadowMode: rapid.Bool().Draw(t, "shadow"),
				DetailedMetric: rapid.Bool().Draw(t, "detailed"), QuotaMode: rapid.Bool().Draw(t, "quota"),
			}
			if rapid.Bool().Draw(t, "limited") {
				d.RateLimit = policy.Draw(t, "policy")
			}
			if rapid.Bool().Draw(t, "described") {
				d.Metadata, _ = structpb.NewStruct(map[string]any{"a": 1.5, "b": []any{"x", true, nil}, "c": map[string]any{"": "y"}})
			}
			if depth > 1 {
				d.Descriptors = descriptors(depth-1).Draw(t, "below")
			}
			return d
		}), 0, 3)
	}
	good := 0
	rapid.Check(t, func(rt *rapid.T) {
		config := &configv3.RateLimitConfig{Domain: word.Draw(rt, "domain"), Descriptors: descriptors(3).Draw(rt, "descriptors")}
		source, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(config)
		if err != nil {
			rt.Fatal(err)
		}
		source = bytes.ReplaceAll(source, []byte(`"unit":42`), []byte(`"unit":"42"`)) // which has no name
		file, problems := envoyconfig.Read([]envoyconfig.File{{Name: "d.json", Source: source}}, envoyconfig.Options{})
		r, err := parse(wire(t, responseOf(t, "1", config)))
		if err != nil {
			rt.Fatal(err)
		}
		resource, same, _ := r.read(envoyconfig.Options{})
		if resource != nil {
			good++
		}
		if understood(file) != understood(resource) || len(problems.Errors()) != len(same.Errors()) || len(problems.Warnings()) != len(same.Warnings()) {
			rt.Fatalf("%s\nthe file is\n%s%s\nand the resource\n%s%s", source, understood(file), problems, understood(resource), same)
		}
	})
	if good < 3 {
		t.Errorf("only %d were good", good)
	}
}

// All that a resource can say arrives.
func TestEveryField(t *testing.T) {
	metadata, err := structpb.NewStruct(map[string]any{"n": 1.5, "t": "x", "b": true, "none": nil, "list": []any{1.0, "y"}, "map": map[string]any{"k": "v"}})
	if err != nil {
		t.Fatal(err)
	}
	config := &configv3.RateLimitConfig{Name: "r", Domain: "edge", Descriptors: []*configv3.RateLimitDescriptor{
		{Key: "a", Value: "x*", ShadowMode: true, QuotaMode: true, DetailedMetric: true, Metadata: metadata, RateLimit: &configv3.RateLimitPolicy{
			Unit: configv3.RateLimitUnit_WEEK, RequestsPerUnit: math.MaxUint32, Name: "n", Replaces: []*configv3.RateLimitReplace{{Name: "m"}},
		}, Descriptors: []*configv3.RateLimitDescriptor{{Key: "b", RateLimit: &configv3.RateLimitPolicy{Unlimited: true}}}},
	}}
	// A field that is added to the protocol is seen here, so that nobody forgets it.
	for name, fields := range map[string]int{"RateLimitConfig": 3, "RateLimitDescriptor": 8, "RateLimitPolicy": 5, "RateLimitReplace": 1} {
		if got := descriptorOf.ParentFile().Messages().ByName(protoreflect.Name(name)).Fields().Len(); got != fields {
			t.Errorf("a %s has %d fields", name, got)
		}
	}
	r, err := parse(wire(t, responseOf(t, "1", config)))
	if err != nil {
		t.Fatal(err)
	}
	got, problems, err := r.read(envoyconfig.Options{})
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	if text := dump(got); text != "edge.a_x*: unit=WEEK requests_per_unit=4294967295, shadow_mode: true, quota_mode: true, name: n\nedge.a_x*.b: unlimited: true\n" {
		t.Error(text)
	}
	for n := range got.Nodes() {
		if n.Path == "edge.a_x*" && (!reflect.DeepEqual(n.Metadata, metadata.AsMap()) || !reflect.DeepEqual(n.Replaces, []string{"m"})) {
			t.Errorf("%+v", n)
		}
	}
}

// What is out of bounds is rejected before it is decoded, and the reason says which.
func TestBounds(t *testing.T) {
	deep := &configv3.RateLimitConfig{Domain: "deep"}
	at := &deep.Descriptors
	for range 5000 {
		*at = []*configv3.RateLimitDescriptor{{Key: "k"}}
		at = &(*at)[0].Descriptors
	}
	wide := &configv3.RateLimitConfig{Domain: "wide", Descriptors: []*configv3.RateLimitDescriptor{{Key: "k", RateLimit: &configv3.RateLimitPolicy{
		Unlimited: true, Replaces: make([]*configv3.RateLimitReplace, MaxMessages),
	}}}}
	for i := range wide.Descriptors[0].RateLimit.Replaces {
		wide.Descriptors[0].RateLimit.Replaces[i] = &configv3.RateLimitReplace{}
	}
	many := make([]proto.Message, MaxResources+1)
	for i := range many {
		many[i] = domain(fmt.Sprint("d", i), 1)
	}
	malformed := responseOf(t, "1", domain("a", 1))
	malformed.Resources[0].Value = []byte{0x0a}
	notText := responseOf(t, "1", domain("a", 1))
	notText.Resources[0].Value = []byte{0x12, 1, 0xff}
	foreign := responseOf(t, "1", domain("a", 1), &anypb.Any{})
	long := responseOf(t, strings.Repeat("v", maxVersion+1))
	for want, r := range map[string]*discoveryv3.DiscoveryResponse{
		"resources[1]: messages are nested more than 64 deep":                                        responseOf(t, "1", domain("a", 1), deep),
		"resources[0]: there are more than 400000 descriptors, limits and values in all; send fewer": responseOf(t, "1", wide),
		"1001 resources exceed the maximum of 1000":                                                  responseOf(t, "1", many...),
		"resources[0]: envoyxds: the response is not protobuf":                                       malformed,
		"resources[0] cannot be decoded":                                                             notText,
		`resources[1] has the type "type.googleapis.com/google.protobuf.Any"`:                        foreign,
		"version_info has 1025 bytes":                                                                long,
		`resource of a: error: a: domain: "a" is already in resource of a; merge the two`:            responseOf(t, "1", domain("a", 1), domain("a", 2)),
	} {
		parsed, err := parse(wire(t, r))
		if err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		if config, _, err := parsed.read(envoyconfig.Options{}); config != nil || err == nil || !strings.Contains(detail(err), want) {
			t.Errorf("%.300v, want %s", err, want)
		}
	}
	other := responseOf(t, "1")
	other.TypeUrl = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	if _, err := parse(wire(t, other)); err == nil || !strings.Contains(err.Error(), "instead of "+TypeURL) {
		t.Error(err)
	}
	for _, data := range []string{"\x0a", "\xff", "\x12\x02\x0a", "HTTP/1.1 400 Bad Request", "\x0a\x01\xff", "\x2a\x01\xff"} {
		if _, err := parse([]byte(data)); err == nil {
			t.Errorf("%q was taken", data)
		}
	}
}

// A rejection names ten problems, and is short.
func TestDetail(t *testing.T) {
	config := &configv3.RateLimitConfig{Domain: "edge", Descriptors: make([]*configv3.RateLimitDescriptor, 500)}
	for i := range config.Descriptors {
		config.Descriptors[i] = &configv3.RateLimitDescriptor{Key: strings.Repeat("k", 2000) + fmt.Sprint(i), RateLimit: &configv3.RateLimitPolicy{RequestsPerUnit: 1}}
	}
	r, err := parse(wire(t, responseOf(t, "1", config)))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.read(envoyconfig.Options{}); err == nil || len(detail(err)) > maxDetail {
		t.Errorf("%d bytes", len(detail(err)))
	}
	for i := range config.Descriptors {
		config.Descriptors[i].Key = fmt.Sprint("k", i)
	}
	if r, err = parse(wire(t, responseOf(t, "1", config))); err != nil {
		t.Fatal(err)
	}
	_, _, err = r.read(envoyconfig.Options{})
	if text := detail(err); !strings.HasSuffix(text, "\nand 191 more errors") || !strings.Contains(text, "error: edge.k9: unit: required") {
		t.Error(text)
	}
}

// Whatever a server sends, nothing worse than an error comes of it.
func FuzzResponse(f *testing.F) {
	data, err := proto.Marshal(&discoveryv3.DiscoveryResponse{VersionInfo: "1", TypeUrl: TypeURL})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	value, err := anypb.New(domain("edge", 5))
	if err != nil {
		f.Fatal(err)
	}
	if data, err = proto.Marshal(&discoveryv3.DiscoveryResponse{VersionInfo: "1", TypeUrl: TypeURL, Resources: []*anypb.Any{value}}); err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := parse(data)
		if err != nil {
			return
		}
		config, _, err := r.read(envoyconfig.Options{})
		if (config == nil) == (err == nil) {
			t.Errorf("a configuration is %v, and the error %v", config != nil, err)
		}
	})
}
