package envoy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// validated is a message that knows its own bounds.
type validated interface {
	proto.Message
	ValidateAll() error
}

// understand reads a part of an example as Envoy would: every field has to be known, and
// every value to be allowed.
func understand(t *testing.T, what string, value any, into validated) {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if err := protojson.Unmarshal(text, into); err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if err := into.ValidateAll(); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

func readYAML(t *testing.T, name string, into any) {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("../../../examples/envoy", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(source, into); err != nil {
		t.Fatal(err)
	}
}

// What the examples tell Envoy is what Envoy understands.
func TestExamples(t *testing.T) {
	var whole map[string]any
	readYAML(t, "envoy.yaml", &whole)
	bootstrap := new(bootstrapv3.Bootstrap)
	understand(t, "envoy.yaml", whole, bootstrap)

	// The cluster with TLS is that of envoy.yaml elsewhere, with TLS that Envoy verifies.
	var secure map[string]any
	readYAML(t, "cluster-tls.yaml", &secure)
	cluster, upstream := new(clusterv3.Cluster), new(tlsv3.UpstreamTlsContext)
	understand(t, "cluster-tls.yaml", secure, cluster)
	if err := cluster.TransportSocket.GetTypedConfig().UnmarshalTo(upstream); err != nil {
		t.Fatal(err)
	}
	if err := upstream.ValidateAll(); err != nil {
		t.Error(err)
	}
	context := upstream.CommonTlsContext.GetValidationContext()
	if upstream.Sni == "" || context.TrustedCa == nil || len(context.MatchTypedSubjectAltNames) != 1 || !slices.Equal(upstream.CommonTlsContext.AlpnProtocols, []string{"h2"}) {
		t.Errorf("cluster-tls.yaml: %v", upstream)
	}
	plain := proto.CloneOf(bootstrap.StaticResources.Clusters[0])
	cluster.TransportSocket, plain.LoadAssignment = nil, cluster.LoadAssignment
	if !proto.Equal(cluster, plain) {
		t.Errorf("but for TLS, the cluster is %v, want %v", cluster, plain)
	}

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
	readYAML(t, "istio.yaml", &istio)
	for _, p := range istio.Spec.ConfigPatches {
		switch p.ApplyTo {
		case "HTTP_FILTER":
			understand(t, "istio.yaml: the filter", p.Patch.Value, &hcmv3.HttpFilter{})
		case "VIRTUAL_HOST":
			p.Patch.Value["name"], p.Patch.Value["domains"] = "merged", []string{"*"}
			understand(t, "istio.yaml: the virtual host", p.Patch.Value, &routev3.VirtualHost{})
		default:
			t.Errorf("istio.yaml patches %s", p.ApplyTo)
		}
	}

	var gateway struct {
		Spec struct {
			Patches []struct {
				Type      string `yaml:"type"`
				Operation struct {
					Value any `yaml:"value"`
				} `yaml:"operation"`
			} `yaml:"jsonPatches"`
		} `yaml:"spec"`
	}
	readYAML(t, "envoy-gateway.yaml", &gateway)
	for _, p := range gateway.Spec.Patches {
		what := "envoy-gateway.yaml: " + p.Type
		switch p.Type {
		case "type.googleapis.com/envoy.config.cluster.v3.Cluster":
			understand(t, what, p.Operation.Value, &clusterv3.Cluster{})
		case "type.googleapis.com/envoy.config.listener.v3.Listener":
			understand(t, what, p.Operation.Value, &hcmv3.HttpFilter{})
		case "type.googleapis.com/envoy.config.route.v3.RouteConfiguration":
			understand(t, what, map[string]any{"name": "patched", "domains": []string{"*"}, "rate_limits": p.Operation.Value}, &routev3.VirtualHost{})
		default:
			t.Errorf("%s is patched", what)
		}
	}
	if len(istio.Spec.ConfigPatches) != 2 || len(gateway.Spec.Patches) != 3 {
		t.Error("some patches were not found")
	}
}
