package e2e

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// A gateway passes on as many requests as the adaptive limit of its route allows. Metrics, the API
// and weir top show the limit, what is in flight and what was denied, and the requests in flight
// under a rule.
func TestGatewayAdaptive(t *testing.T) {
	release := make(chan struct{})
	u := newUpstream(t)
	u.waiting, u.release = make(chan struct{}, 2), release
	dir := t.TempDir()
	write(t, dir, "rules.yaml", "rules: [{id: slow, match: {path: /slow}, key: ip, concurrency: 5}]")
	write(t, dir, "weir.yaml", "upstream: [{route: /slow, url: "+u.URL+", adaptive: {min: 2, max: 2}}]")
	p := start(t, dir, "gateway", "--config", "weir.yaml", "--http", "127.0.0.1:0", "--listen", "127.0.0.1:0")
	c := client(t)
	var inFlight sync.WaitGroup
	t.Cleanup(inFlight.Wait)
	free := sync.OnceFunc(func() { close(release) })
	t.Cleanup(free) // before that
	for range 2 {
		inFlight.Go(func() {
			if a, err := try(client(t), "GET", p.Gateway+"/slow", ""); err != nil || a.Status != http.StatusOK || a.Text != "slow" {
				t.Errorf("%v %+v", err, a)
			}
		})
		<-u.waiting
	}
	if a := ask(t, c, "GET", p.Gateway+"/slow", ""); a.Status != http.StatusServiceUnavailable || a.Header.Get("Retry-After") != "1" || a.Detail != "The upstream is overloaded; try again soon." {
		t.Errorf("%d %v %s", a.Status, a.Header, a.Text)
	}
	metrics := func(lines ...string) func() bool {
		return func() bool {
			text := ask(t, c, "GET", p.URL+"/metrics", "").Text
			for _, line := range lines {
				if !strings.Contains(text, line+"\n") {
					return false
				}
			}
			return true
		}
	}
	label := `{upstream="` + u.URL + `"} `
	waitFor(t, "two in flight", metrics("weir_adaptive_limit"+label+"2", "weir_adaptive_in_flight"+label+"2", "weir_adaptive_denied_total"+label+"1", `weir_in_flight{rule="slow"} 2`))
	if a := ask(t, c, "GET", p.URL+"/v1/stats/summary", ""); !strings.Contains(a.Text, `"adaptive":[{"upstream":"`+u.URL+`","limit":2,"in_flight":2,"denied":1}]`) {
		t.Errorf("%s", a.Text)
	}
	waitFor(t, "weir top", func() bool { // which knows of a second when it is over
		out, err := exec.Command(filepath.Join(bin, "weir"), "top", "--once", "--server", p.URL).CombinedOutput()
		text := string(out)
		return err == nil && strings.Contains(text, "2 of 2   denied 1") && regexp.MustCompile(`(?m)^slow +\S+ +3 `).MatchString(text)
	})
	free()
	inFlight.Wait()
	waitFor(t, "none in flight", metrics("weir_adaptive_in_flight"+label+"0", `weir_in_flight{rule="slow"} 0`, `weir_in_flight_seconds_count{rule="slow"} 3`))
}
