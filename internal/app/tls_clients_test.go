package app

import (
	"crypto/tls"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/weirhq/weir/internal/trust"
)

// The names that clients must have hold for gRPC, too, and not only for the first
// certificate.
func TestClientNamesOverGRPC(t *testing.T) {
	for name, welcome := range map[string]bool{"127.0.0.1": true, "envoy.example.com": false} {
		dir := t.TempDir()
		pair := trust.Options{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem"), ClientCAFile: filepath.Join(dir, "cert.pem")}
		pair.ClientSANs = []string{"other.example.com", name}
		writePair(t, pair, 1)
		o, _ := prepared(t, Options{TLS: pair}, perUser)
		a := started(t, o)
		writePair(t, pair, 2)
		if err := a.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		mine, err := tls.LoadX509KeyPair(pair.CertFile, pair.KeyFile)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := grpc.NewClient("passthrough:///"+a.Addrs().GRPC.String(), grpc.WithTransportCredentials(
			credentials.NewTLS(&tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{mine}})))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{}); (err == nil) != welcome {
			t.Errorf("a client that need be %s: %v", name, err)
		}
	}
}
