package app

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/envoy/envoyxds"
	"github.com/weirhq/weir/internal/trust"
)

// Settings of xDS that contradict others, or are alone, are errors that say so.
func TestXDSOptions(t *testing.T) {
	plane := envoyxds.Options{Server: "localhost:18000"}
	for want, e := range map[string]Envoy{
		"--envoy-xds and --envoy-config exclude each other":                 {Config: "dir", XDS: XDS{Options: plane}},
		"--envoy-require-config requires --envoy-config":                    {RequireConfig: true, XDS: XDS{Options: plane}},
		`"18000" is not an address; write host:port, as in localhost:18000`: {XDS: XDS{Options: envoyxds.Options{Server: "18000"}}},
		"these flags require --envoy-xds":                                   {XDS: XDS{Files: trust.ClientCert{CAFile: "ca.pem"}}},
	} {
		if _, err := New(Options{Envoy: e}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", e.XDS, err, want)
		}
	}
	o, _ := prepared(t, Options{Envoy: Envoy{XDS: XDS{Options: plane, Files: trust.ClientCert{CAFile: "nowhere.pem"}}}}, perUser)
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "--envoy-xds: ") || !strings.Contains(err.Error(), "nowhere.pem") {
		t.Errorf("Start = %v", err)
	}
}
