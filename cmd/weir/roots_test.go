package main

import (
	"crypto/x509"
	"os"
	"os/exec"
	"testing"
)

// Where the system has no list of CAs, as in a container, weir still trusts the public ones.
func TestPublicAuthorities(t *testing.T) {
	if os.Getenv("WEIR_TEST_WITHOUT_ROOTS") == "" {
		child := exec.Command(os.Args[0], "-test.run=^TestPublicAuthorities$")
		child.Env = append(os.Environ(), "WEIR_TEST_WITHOUT_ROOTS=1", "SSL_CERT_FILE=none", "SSL_CERT_DIR=none")
		if out, err := child.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	roots, err := x509.SystemCertPool()
	if err != nil || roots.Equal(x509.NewCertPool()) {
		t.Errorf("there are no CAs: %v", err)
	}
}
