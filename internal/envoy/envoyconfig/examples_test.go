package envoyconfig

import (
	"bytes"
	"os"
	"testing"
)

// The examples are read without a word.
func TestExamples(t *testing.T) {
	d, err := Open("../../../examples/envoy/config", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if w := d.Warnings(); len(w) > 0 {
		t.Error(w)
	}
	for domain, list := range map[string]string{"edge": "path=/login,remote_address=203.0.113.7", "api": "user=alice,export=x"} {
		if d.Config().Domain(domain).Find(query(list)) == nil {
			t.Errorf("%s leads nowhere in %s", list, domain)
		}
	}
}

// docs/reference/envoy-service.md quotes what /rlconfig says of the examples.
func TestExampleDump(t *testing.T) {
	d, err := Open("../../../examples/envoy/config", Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := d.Config().Dump(&got); err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/rlconfig.txt"
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || got.String() != string(want) {
		t.Errorf("%v\n%s", err, got.String())
	}
}
