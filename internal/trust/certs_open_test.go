package trust

import (
	"io"
	"log"
	"path/filepath"
	"strings"
	"testing"
)

// quiet swallows what a server says of clients that it turned away.
var quiet = log.New(io.Discard, "", 0)

func TestOpenErrors(t *testing.T) {
	a, good := newAuthority(t), newFiles(t)
	good.pair(a, "server")
	other := newFiles(t)
	other.pair(a, "other")
	empty := filepath.Join(t.TempDir(), "empty.pem")
	good.write(empty, nil)
	large := filepath.Join(t.TempDir(), "large.pem")
	good.write(large, make([]byte, maxFile+1))
	for _, c := range []struct {
		name string
		o    Options
		want string
	}{
		{"nothing", Options{}, "a certificate and its key are both required"},
		{"no key", Options{CertFile: good.CertFile}, "a certificate and its key are both required"},
		{"not there", Options{CertFile: good.CertFile + "x", KeyFile: good.KeyFile}, "no such file"},
		{"key not there", Options{CertFile: good.CertFile, KeyFile: good.KeyFile + "x"}, "no such file"},
		{"key of another", Options{CertFile: good.CertFile, KeyFile: other.KeyFile},
			good.CertFile + " and " + other.KeyFile + " cannot be used together: private key does not match public key; they must be"},
		{"exchanged", Options{CertFile: good.KeyFile, KeyFile: good.CertFile}, "cannot be used together"},
		{"empty", Options{CertFile: empty, KeyFile: good.KeyFile}, "cannot be used together"},
		{"large", Options{CertFile: large, KeyFile: good.KeyFile}, "is larger than 1 MiB"},
		{"no authority", Options{CertFile: good.CertFile, KeyFile: good.KeyFile, ClientCAFile: empty}, empty + " has no certificate; it must be a PEM file"},
		{"authority not there", Options{CertFile: good.CertFile, KeyFile: good.KeyFile, ClientCAFile: empty + "x"}, "no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := OpenCerts(c.o)
			if got != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			if !strings.HasPrefix(err.Error(), "certs: ") || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "tls: ") {
				t.Errorf("%q is not one sentence of ours", err)
			}
		})
	}
}
