package e2e

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A gateway under real load that may use hardly any CPU sheds requests of low priority, and no
// critical ones. When the load has ended, it stops.
func TestGatewayProtectsItself(t *testing.T) {
	t.Setenv("GOMAXPROCS", "1") // so that the load is enough on any machine
	u := newUpstream(t)
	dir := t.TempDir()
	write(t, dir, "rules.yaml", `rules:
  - {id: batch, match: {path: /batch}, key: ip, limit: 100000000/1h, priority: low}
  - {id: pay, match: {path: /pay}, key: ip, limit: 100000000/1h, priority: critical}
`)
	p := start(t, dir, "gateway", "--http", "127.0.0.1:0", "--listen", "127.0.0.1:0", "--upstream", u.URL, "--protect", "cpu=5%,memory=100%")
	c := client(t)
	until := time.Now().Add(2 * time.Minute)
	var load sync.WaitGroup
	for range 4 {
		load.Go(func() {
			for shed := 0; shed < 100; {
				a := ask(t, c, "GET", p.Gateway+"/batch", "")
				switch {
				case a.Status == http.StatusServiceUnavailable && a.Header.Get("Retry-After") == "1" && strings.Contains(a.Text, "The server is overloaded; try again soon."):
					shed++
				case a.Status != http.StatusOK:
					t.Errorf("%d %v %s", a.Status, a.Header, a.Text)
					return
				case time.Now().After(until):
					t.Error("nothing is shed")
					return
				}
				if a := ask(t, c, "GET", p.Gateway+"/pay", ""); a.Status != http.StatusOK {
					t.Errorf("a critical request: %d %s", a.Status, a.Text)
					return
				}
			}
		})
	}
	load.Wait()
	metrics := ask(t, c, "GET", p.URL+"/metrics", "").Text
	for _, want := range []string{`weir_protect_shed_total{priority="low"} `, `weir_protect_shed_total{priority="critical"} 0`, `weir_protect_usage{resource="cpu"} `, `weir_protect_usage{resource="memory"} `} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics have no %s", want)
		}
	}
	var summary struct {
		Priorities []struct {
			Priority        string
			Allowed, Denied int
		}
		Protect struct {
			CPU         float64 `json:"cpu"`
			CPULimit    float64 `json:"cpu_limit"`
			MemoryLimit float64 `json:"memory_limit"`
			Shed        map[string]int
		}
	}
	waitFor(t, "statistics by priority", func() bool { // which know of a second when it is over
		summary.Priorities = nil
		if err := json.Unmarshal([]byte(ask(t, c, "GET", p.URL+"/v1/stats/summary", "").Text), &summary); err != nil {
			t.Fatal(err)
		}
		p := summary.Priorities
		return len(p) == 4 && p[0].Priority == "critical" && p[0].Allowed >= 400 && p[0].Denied == 0 && p[3].Priority == "low" && p[3].Denied >= 400
	})
	if p := summary.Protect; p.CPU <= 0 || p.CPULimit != 0.05 || p.MemoryLimit != 1 || p.Shed["low"] < 400 || p.Shed["critical"] != 0 {
		t.Errorf("%+v", p)
	}
	out, err := exec.Command(filepath.Join(bin, "weir"), "top", "--once", "--server", p.URL).CombinedOutput()
	if text := string(out); err != nil || !strings.Contains(text, "\nprotect     cpu ") || !strings.Contains(text, " of 5.0 %   memory ") || !strings.Contains(text, "   shed low 4") ||
		!strings.Contains(text, "\ncritical ") {
		t.Errorf("weir top: %v\n%s", err, text)
	}
	for _, want := range []string{"protecting this process", "requests are shed"} {
		if !strings.Contains(p.log.String(), want) {
			t.Errorf("the log has no %q: %s", want, p.log)
		}
	}
	waitFor(t, "a low request that is allowed again", func() bool {
		return ask(t, c, "GET", p.Gateway+"/batch", "").Status == http.StatusOK
	})
}

// The dashboard of a gateway that protects its process shows what it uses and what was shed.
func TestDashboardProtect(t *testing.T) {
	u := newUpstream(t)
	dir := t.TempDir()
	write(t, dir, "rules.yaml", "rules: [{id: all, key: ip, limit: 1000/1h}]")
	p := start(t, dir, "gateway", "--http", "127.0.0.1:0", "--listen", "127.0.0.1:0", "--upstream", u.URL, "--protect", "memory=100%")
	page := openBrowser(t).open(p.URL, "")
	page.see(id("tile-protect"), "CPU / memory used")
	page.see(id("tile-protect"), " %\nshed: low 0 normal 0 high 0")
}
