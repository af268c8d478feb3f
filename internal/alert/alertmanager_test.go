package alert

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// startAlertmanager starts Debian's, and stops it when the test is over.
func startAlertmanager(t *testing.T) (url string) {
	t.Helper()
	path, err := exec.LookPath("prometheus-alertmanager")
	if err != nil {
		t.Fatal("prometheus-alertmanager is missing; run make test, which installs it, or install Debian's package")
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yml")
	if err := os.WriteFile(config, []byte("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 5 { // somebody else may take the port before it does
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := l.Addr().String()
		l.Close()
		cmd := exec.Command(path, "--config.file="+config, "--storage.path="+dir, "--web.listen-address="+addr, "--cluster.listen-address=")
		log, err := os.Create(filepath.Join(dir, "log"))
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			cmd.Wait()
			log.Close()
		}()
		t.Cleanup(func() {
			cmd.Process.Kill()
			<-ended
		})
		if ready("http://"+addr, ended) {
			return "http://" + addr
		}
	}
	text, _ := os.ReadFile(filepath.Join(dir, "log"))
	t.Fatalf("it does not start:\n%s", text)
	return ""
}

func ready(url string, ended chan struct{}) bool {
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); {
		select {
		case <-ended:
			return false
		case <-time.After(50 * time.Millisecond):
		}
		if resp, err := http.Get(url + "/-/ready"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return true
			}
		}
	}
	return false
}

// known are the alerts that Alertmanager holds, by name, subject and summary.
func known(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url + "/api/v2/alerts")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var all []struct {
		Labels, Annotations map[string]string
		EndsAt              time.Time
		GeneratorURL        string
	}
	if err := json.NewDecoder(resp.Body).Decode(&all); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, a := range all {
		lines = append(lines, fmt.Sprintf("%s %s %s %s: %s (%s, %s)", a.Labels["alertname"], a.Labels["subject"], a.Labels["rule"], a.Labels["severity"],
			a.Annotations["summary"], a.Annotations["instance"], a.GeneratorURL))
	}
	return strings.Join(lines, "\n")
}

// The real one takes alerts, and takes them back when they are resolved.
func TestAlertmanager(t *testing.T) {
	url := startAlertmanager(t)
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	m, err := NewAlertmanager(url + "/")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	a := Alert{ID: "shadow:soon", Kind: Shadow, Subject: "soon\xff", Rule: "soon", Instance: "here", URL: "http://127.0.0.1:8080/#/alerts", State: Firing, Summary: "it would deny 3 %", StartsAt: now.Add(-time.Minute)}
	if err := m.Notify(t.Context(), []Alert{a}); err != nil {
		t.Fatal(err)
	}
	if got := known(t, url); got != "weir_shadow soon? soon warning: it would deny 3 % (here, http://127.0.0.1:8080/#/alerts)" {
		t.Errorf("it knows %q", got)
	}
	a.State, a.EndsAt = Resolved, time.Now()
	if err := m.Notify(t.Context(), []Alert{a}); err != nil {
		t.Fatal(err)
	}
	if got := known(t, url); got != "" {
		t.Errorf("it still knows %q", got)
	}
	if _, err := NewAlertmanager("nonsense"); err == nil {
		t.Error("nonsense is an address")
	}
	if m.Repeat() >= lease {
		t.Error("it forgets alerts before they are repeated")
	}
}
