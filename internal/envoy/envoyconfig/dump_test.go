package envoyconfig

import (
	"strings"
	"testing"
)

// Every limit has a line, by domain and in the order of the files; what weir adds stands
// at the end.
func TestDump(t *testing.T) {
	config, problems := Read([]File{
		{Name: "b.yaml", Source: []byte(`
domain: zone
on_failure: local
descriptors:
  - key: user
    shadow_mode: true
    rate_limits:
      - {name: burst, unit: 10s, requests_per_unit: 10, algorithm: token_bucket, burst: 30}
      - {unit: hour, requests_per_unit: 5000, algorithm: sliding_window}
`)},
		{Name: "c.yaml", Source: []byte(`
domain: edge
descriptors:
  - key: remote_address
    quota_mode: true
    rate_limit: {unit: second, requests_per_unit: 50}
  - key: path
    value: /login*
    descriptors:
      - key: remote_address
        rate_limit: {unit: Minute, requests_per_unit: 5}
  - key: source
    value: monitoring
    rate_limit: {unlimited: true}
  - key: other
`)},
	}, Options{})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	if got := config.Descriptors(); got != 6 {
		t.Errorf("there are %d descriptors, want 6", got)
	}
	const want = `edge.remote_address: unit=SECOND requests_per_unit=50, shadow_mode: false, quota_mode: true
edge.path_/login*.remote_address: unit=MINUTE requests_per_unit=5, shadow_mode: false, quota_mode: false
edge.source_monitoring: unlimited: true
zone.user: unit=10s requests_per_unit=10, shadow_mode: true, quota_mode: false, name: burst, algorithm: token_bucket, burst: 30, on_failure: local
zone.user: unit=HOUR requests_per_unit=5000, shadow_mode: true, quota_mode: false, algorithm: sliding_window, on_failure: local
`
	var b strings.Builder
	if err := config.Dump(&b); err != nil || b.String() != want {
		t.Errorf("%v\n%s", err, b.String())
	}
}
