package e2e

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/testkit/testredis"
)

// startHAWithNginx is the load balancer of examples/proxies/ha/nginx.conf.
func startHAWithNginx(t *testing.T, store string) *ha {
	h := startHA(t, store)
	adopt(t, h.dir, "ha/nginx.conf", append(h.replaced(),
		"/run/weir-authz.sock", filepath.Join(h.dir, "authz.sock"), "proxy_connect_timeout 500ms", "proxy_connect_timeout 5s")...)
	write(t, h.dir, "main.conf", strings.Replace(nginxMain, "weir.conf", "nginx.conf", 1))
	// One process, so that none is left when it is killed.
	run(t, h.dir, program(t, "nginx"), []string{"-p", h.dir, "-e", "stderr", "-c", "main.conf", "-g", "daemon off; master_process off;"}, []string{h.public()})
	return h
}

var decided = regexp.MustCompile(`(?m)^weir_requests_total\{outcome="(?:allowed|denied)"\} [1-9]`)

// waitAsked waits until a weir has decided something since it was started.
func (h *ha) waitAsked(i int) {
	waitFor(h.t, haNames[i]+" asked", func() bool {
		return decided.MatchString(ask(h.t, client(h.t), "GET", "http://"+h.addresses[i]+"/metrics", "").Text)
	})
}

// Through the loss of a weir and the replacement of all weirs, no client of nginx sees an error, and
// no check is charged twice.
func TestHighAvailabilityNginx(t *testing.T) {
	h := startHAWithNginx(t, "redis://"+testredis.Start(t).Addr)
	h.phase("quiet", func(*load) {}).exact(t, "quiet")
	for i := range h.weirs {
		h.waitAsked(i)
	}

	// A check that was sent is not sent again, whether by POST or by GET. nginx may avoid the first of the
	// two weirs for a while, so the second is another one.
	h.sentOnce(2, "POST", "/v1/check", `{"user": "still"}`)
	h.sentOnce(0, "GET", "/v1/authz", "", "X-User", "still")

	// The original method arrives, and so does weir's answer.
	a := ask(t, client(t), "GET", h.url+"/v1/authz", "", "X-User", "quiet-0")
	if a.Status != 429 || a.Header.Get("X-RateLimit-Remaining") != "0" {
		t.Errorf("a user without units: %d %v %s", a.Status, a.Header, a.Text)
	}

	l := h.phase("weir", func(l *load) {
		h.weirs[1].kill()
		l.ended.Store(true)
	})
	l.lostOnly(t, "weir")
	h.weirs[1] = h.startWeir(1)

	// nginx asks each of them again before the next one stops. A call that arrives while a weir closes its
	// port may be lost.
	l = h.phase("roll", func(*load) {
		for i, name := range haNames {
			h.waitAsked((i + 1) % haInstances)
			h.waitAsked((i + 2) % haInstances)
			if code := h.weirs[i].stop(t); code != 0 {
				t.Errorf("%s ended with %d", name, code)
			}
			h.weirs[i] = h.startWeir(i)
		}
	})
	l.lostOnly(t, "roll")
	if _, _, away := l.sum(); away > haInstances*haCallers {
		t.Errorf("%d calls were lost, though at most %d were in flight at each of %d weirs", away, haCallers, haInstances)
	}

	// Without any weir, nginx answers as HAProxy does.
	for _, p := range h.weirs {
		p.kill()
	}
	_, want, _ := strings.Cut(readPage(t, "examples/proxies/ha/unavailable.http"), "\n\n")
	a = ask(t, client(t), "POST", h.url+"/v1/check", `{"user": "nobody"}`)
	if a.Status != 200 || !a.Degraded || a.Header.Get("X-Weir-Unavailable") == "" || strings.TrimSpace(a.Text) != strings.TrimSpace(want) {
		t.Errorf("without any weir: %d %v %s, want %s", a.Status, a.Header, a.Text, want)
	}
	if a := ask(t, client(t), "GET", h.url+"/v1/authz", "", "X-User", "nobody"); a.Status != 200 || a.Header.Get("X-Weir-Unavailable") == "" {
		t.Errorf("without any weir, a proxy gets %d %v %s", a.Status, a.Header, a.Text)
	}
}
