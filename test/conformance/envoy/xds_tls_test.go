package envoy

import (
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/internal/trust"
)

// With TLS, the control plane and weir must both show a certificate of the other's authority.
func TestXDSTLS(t *testing.T) {
	dir := t.TempDir()
	ca, cert, key := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	testredis.Certify(t, ca, cert, key)
	server, err := trust.OpenCerts(trust.Options{CertFile: cert, KeyFile: key, ClientCAFile: ca})
	if err != nil {
		t.Fatal(err)
	}
	p := newPlane(t, grpc.Creds(credentials.NewTLS(server.TLS())))
	p.up()
	p.set("1", basic()...)
	run := func(args ...string) *program {
		t.Helper()
		return serve(t, append([]string{"--envoy-xds", p.address, "--envoy-xds-node-id", node}, args...)...)
	}
	w := run("--envoy-xds-tls-ca", ca, "--envoy-xds-tls-cert", cert, "--envoy-xds-tls-key", key, "--envoy-xds-tls-san", "localhost")
	p.accepted("1")
	w.await(t, "weir is ready", func() bool { return w.status(t, "/readyz") == 200 })
	const trouble = "the xDS server is unavailable" // in the words of whoever notices first
	for _, c := range []struct {
		want string
		args []string
	}{
		{trouble, nil},
		{trouble, []string{"--envoy-xds-tls-ca", ca}},
		{"unknown authority", []string{"--envoy-xds-tls"}},
		{"not elsewhere", []string{"--envoy-xds-tls-ca", ca, "--envoy-xds-tls-cert", cert, "--envoy-xds-tls-key", key, "--envoy-xds-tls-san", "elsewhere"}},
	} {
		w := run(c.args...)
		w.await(t, "weir says: "+c.want, func() bool { return strings.Contains(w.output(), c.want) })
		if got := w.status(t, "/readyz"); got != 503 {
			t.Errorf("%v: /readyz is %d", c.args, got)
		}
	}
}
