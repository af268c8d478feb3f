package envoyrls

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/rules/manage"
)

// The log tells of descriptors that are charged always, and of no others.
func TestChargeAlwaysLog(t *testing.T) {
	const config = `
domain: d
descriptors:
  - {key: words, charge: always, rate_limit: {unit: hour, requests_per_unit: 100}}
  - {key: requests, rate_limit: {unit: minute, requests_per_unit: 2}}
`
	log := new(strings.Builder)
	b := newBench(t, config, Options{Checks: manage.NewChecks(nil, nil, slog.New(slog.NewTextHandler(log, nil)))})
	client := dial(t, b.Service)
	for _, descriptors := range [][]string{{"requests=a", "words=a x0"}, {"requests=a x9"}, {"requests=a", "words=a x70"}, {"words=a x70"}} {
		if _, err := client.ShouldRateLimit(t.Context(), request(descriptors...)); err != nil {
			t.Fatal(err)
		}
	}
	lines := ""
	for line := range strings.Lines(log.String()) {
		_, line, _ = strings.Cut(line, "msg=")
		lines += line
	}
	const want = `"charged always" rules=envoy:d.words key="d|words=a" cost=70 fitted=true holder="" client=127.0.0.1
"charged always" rules=envoy:d.words key="d|words=a" cost=70 fitted=false holder="" client=127.0.0.1
`
	if lines != want {
		t.Errorf("%s\nwant\n%s", lines, want)
	}
}

// Envoy AI Gateway asks with 0 hits when a request begins, and tells at the end of the
// response how many tokens it took, over the limit or not.
func TestChargeAlways(t *testing.T) {
	const tokens = `
domain: d
descriptors:
  - {key: tokens, charge: always, rate_limit: {unit: hour, requests_per_unit: 100, algorithm: sliding_log}}
  - {key: bucket, charge: always, rate_limit: {unit: minute, requests_per_unit: 60, algorithm: token_bucket}}
  - {key: requests, rate_limit: {unit: minute, requests_per_unit: 2}}
  - {key: none, rate_limit: {unit: day, requests_per_unit: 0}}
  - {key: watched, charge: always, shadow_mode: true, rate_limit: {unit: day, requests_per_unit: 10, algorithm: sliding_log}}
  - {key: quota, charge: always, quota_mode: true, rate_limit: {unit: day, requests_per_unit: 10, algorithm: sliding_log}}
`
	b := newBench(t, tokens, Options{})
	b.run(t,
		step{request("requests=a", "tokens=a x0"), "ok | ok 1 of 2/minute in 59s | ok 100 of 100/hour in 0s"},
		step{request("tokens=a x70"), "ok | ok 30 of 100/hour in 3600s"},
		step{request("requests=a", "tokens=a x0"), "ok | ok 0 of 2/minute in 59s | ok 30 of 100/hour in 3600s"})
	b.wait(time.Minute)
	b.run(t,
		step{request("tokens=a x70"), "over | over 0 of 100/hour in 3540s"}, // and charged
		step{request("requests=a", "tokens=a x0"), "over | ok 2 of 2/minute in 59s | over 0 of 100/hour in 3540s"},
		step{request("requests=a x2"), "ok | ok 0 of 2/minute in 59s"}, // which was not charged
		// The others deny, and the tokens are charged all the same.
		step{request("requests=a", "tokens=b x60"), "over | over 0 of 2/minute in 59s | ok 40 of 100/hour in 3600s"},
		step{request("none=a", "tokens=b x30"), "over | over 0 of 0/day in 86339s | ok 10 of 100/hour in 3600s"},
		step{request("tokens=b x18446744073709551615", "requests=b"), "over | over 0 of 100/hour in 3600s | ok 1 of 2/minute in 59s"})
	b.wait(59 * time.Minute)
	b.run(t,
		step{request("tokens=a x0"), "ok | ok 30 of 100/hour in 60s"}, // of 140, 70 are left
		step{request("bucket=a x120"), "over | over 0 of 60/minute in 61s"},
		step{request("bucket=a x0"), "over | over 0 of 60/minute in 61s"},
		step{request("watched=a x25"), "ok | ok 0 of 10/day in 86400s"},
		step{request("watched=a x0"), "ok | ok 0 of 10/day in 86400s"},
		step{request("quota=a x25", "requests=c"), "over | over 0 of 10/day in 86400s | ok 1 of 2/minute in 59s"},
		step{request("requests=c"), "ok | ok 1 of 2/minute in 59s"}, // which was given back
		step{request("quota=a x0"), "over | over 0 of 10/day in 86400s"})
}
