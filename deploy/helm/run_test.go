package helm

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// pod is a rendered pod that runs here: with its arguments, its environment and its files, but
// below a directory of its own, and on free ports of the loopback address.
type pod struct {
	objects map[string][]byte
	spec    corev1.PodSpec
	root    string
	cmd     *exec.Cmd
	scheme  string
	address string // of the port http
}

// weirBinary builds weir, once.
var weirBinary = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("make", "--directory", "../..", "build", "BIN="+binDir).CombinedOutput() // with what other tests have compiled
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, out)
	}
	return filepath.Join(binDir, "weir"), err
})

var binDir string

func TestMain(m *testing.M) {
	var err error
	if binDir, err = os.MkdirTemp("", "weir-helm"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(binDir)
	os.Exit(code)
}

// newPod renders the chart and writes the files of the pod's volumes. The secrets are those that
// the values name.
func newPod(t *testing.T, values string, secrets map[string]map[string]string) *pod {
	t.Helper()
	objects, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range secrets {
		text, err := yaml.Marshal(corev1.Secret{StringData: content})
		if err != nil {
			t.Fatal(err)
		}
		objects["Secret/"+name] = text
	}
	p := &pod{objects: objects, root: t.TempDir()}
	p.spec = object[*appsv1.Deployment](t, objects, "Deployment/weir").Spec.Template.Spec
	for _, v := range p.spec.Volumes {
		files := map[string]string{}
		switch {
		case v.ConfigMap != nil:
			files = object[*corev1.ConfigMap](t, objects, "ConfigMap/"+v.ConfigMap.Name).Data
		case v.Secret != nil:
			content := object[*corev1.Secret](t, objects, "Secret/"+v.Secret.SecretName).StringData
			for _, item := range v.Secret.Items {
				files[item.Path] = content[item.Key]
			}
			if v.Secret.Items == nil {
				files = content
			}
		}
		for _, m := range p.spec.Containers[0].VolumeMounts {
			if m.Name != v.Name {
				continue
			}
			dir := filepath.Join(p.root, m.MountPath)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			for name, content := range files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(p.local(content)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return p
}

// local is text of the pod with the paths and the address that are the pod's here.
func (p *pod) local(text string) string {
	return strings.NewReplacer("/etc/weir", p.root+"/etc/weir", "/var/lib/weir", p.root+"/var/lib/weir",
		"/usr/bin/weir", filepath.Join(binDir, "weir"), "127.0.0.1:8080", p.address).Replace(text)
}

// start starts the container, and waits until it listens.
func (p *pod) start(t *testing.T) {
	t.Helper()
	weir, err := weirBinary()
	if err != nil {
		t.Fatal(err)
	}
	container := p.spec.Containers[0]
	args := []string{}
	for _, a := range container.Args {
		args = append(args, p.local(a))
	}
	p.cmd = exec.Command(weir, append(args, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0")...)
	p.cmd.Dir, p.cmd.Stderr, p.cmd.Env = p.root, os.Stderr, []string{}
	for _, e := range container.Env {
		value := e.Value
		if from := e.ValueFrom; from != nil {
			value = object[*corev1.Secret](t, p.objects, "Secret/"+from.SecretKeyRef.Name).StringData[from.SecretKeyRef.Key]
		}
		p.cmd.Env = append(p.cmd.Env, e.Name+"="+value)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.cmd.Process.Kill(); p.cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url := regexp.MustCompile(`(https?)://([^ /]+)`).FindStringSubmatch(line)
	if url == nil {
		t.Fatalf("weir says %q", line)
	}
	p.scheme, p.address = url[1], url[2]
}

// stop ends the container as Kubernetes does.
func (p *pod) stop(t *testing.T) {
	t.Helper()
	p.cmd.Process.Signal(syscall.SIGTERM)
	if err := p.cmd.Wait(); err != nil {
		t.Fatalf("weir ended with %v", err)
	}
}

// ask asks the pod, in the way of whoever has these certificates.
func (p *pod) ask(t *testing.T, scheme, method, path, body, token string, with *tls.Config) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, scheme+"://"+p.address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("If-Match", "*")
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: with, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// probe does what Kubernetes does for a probe: it does not verify a certificate and has none.
func (p *pod) probe(t *testing.T, probe *corev1.Probe) error {
	t.Helper()
	switch {
	case probe.HTTPGet != nil:
		scheme := strings.ToLower(string(probe.HTTPGet.Scheme))
		if scheme == "" {
			scheme = "http"
		}
		if status, text := p.ask(t, scheme, "GET", probe.HTTPGet.Path, "", "", &tls.Config{InsecureSkipVerify: true}); status < 200 || status > 399 {
			return fmt.Errorf("%s %s: %d %s", scheme, probe.HTTPGet.Path, status, text)
		}
		return nil
	case probe.Exec != nil:
		args := []string{}
		for _, a := range probe.Exec.Command {
			args = append(args, p.local(a))
		}
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env = p.cmd.Env
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%q: %w\n%s", args, err, out)
		}
		return err
	case probe.TCPSocket != nil:
		c, err := net.Dial("tcp", p.address)
		if err == nil {
			c.Close()
		}
		return err
	}
	return fmt.Errorf("the probe does nothing: %+v", probe)
}

// failing are the probes that fail.
func (p *pod) failing(t *testing.T) (failing []string) {
	c := p.spec.Containers[0]
	for name, probe := range map[string]*corev1.Probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
		if err := p.probe(t, probe); err != nil {
			failing = append(failing, name+": "+err.Error())
		}
	}
	return failing
}

// monitored is /metrics, as the Prometheus operator's ServiceMonitor reads it.
func (p *pod) monitored(t *testing.T) (int, string) {
	t.Helper()
	endpoint := object[*ServiceMonitor](t, p.objects, "ServiceMonitor/weir").Spec.Endpoints[0]
	scheme, with := endpoint.Scheme, &tls.Config{}
	if scheme == "" {
		scheme = "http"
	}
	if c := endpoint.TLSConfig; c != nil {
		content := func(s *corev1.SecretKeySelector) []byte {
			return []byte(object[*corev1.Secret](t, p.objects, "Secret/"+s.Name).StringData[s.Key])
		}
		with.ServerName = c.ServerName
		if c.CA != nil {
			with.RootCAs = x509.NewCertPool()
			with.RootCAs.AppendCertsFromPEM(content(c.CA.Secret))
		}
		if c.Cert != nil {
			pair, err := tls.X509KeyPair(content(c.Cert.Secret), content(c.KeySecret))
			if err != nil {
				t.Fatal(err)
			}
			with.Certificates = []tls.Certificate{pair}
		}
	}
	return p.ask(t, scheme, "GET", endpoint.Path, "", "", with)
}

// trusting is the configuration of a client that has what is in a Secret: a CA, and a certificate with its key.
func trusting(t *testing.T, secret map[string]string) *tls.Config {
	t.Helper()
	pair, err := tls.X509KeyPair([]byte(secret["tls.crt"]), []byte(secret["tls.key"]))
	if err != nil {
		t.Fatal(err)
	}
	with := &tls.Config{RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{pair}}
	with.RootCAs.AppendCertsFromPEM([]byte(secret["ca.crt"]))
	return with
}

// The pod starts: its probes and the ServiceMonitor reach it in plain HTTP, with TLS, and with TLS
// that requires client certificates.
func TestRun(t *testing.T) {
	const monitored = "tokens: {content: \"alice admin 0123456789abcdef\"}\nserviceMonitor: {enabled: true"
	secrets := certificates(t)
	secrets["certs"] = secrets["weir-server"]
	for name, c := range map[string]struct{ values, scheme string }{
		"plain":                        {strings.NewReplacer(`redis://:pa\"ss@redis:6379`, "memory://", "collector:4318", "127.0.0.1:1").Replace(cases["everything"]), "http"},
		"TLS":                          {monitored + "}\ntls: {existingSecret: weir-server}", "https"},
		"TLS with client certificates": {monitored + "}\n" + guideValues(t)[1], "https"},
		"TLS with files": {monitored + `, tlsConfig: {serverName: weir, ca: {secret: {name: certs, key: ca.crt}}}}
settings: {tls_cert: /etc/weir/certs/tls.crt, tls_key: /etc/weir/certs/tls.key}
extraVolumes: [{name: certs, secret: {secretName: certs}}]
extraVolumeMounts: [{name: certs, mountPath: /etc/weir/certs}]`, "https"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPod(t, c.values, secrets)
			p.start(t)
			if p.scheme != c.scheme {
				t.Errorf("weir listens with %s, want %s", p.scheme, c.scheme)
			}
			for _, fails := range p.failing(t) {
				t.Error(fails)
			}
			if status, text := p.monitored(t); status != 200 || !strings.Contains(text, "\nweir_rules_hash ") {
				t.Errorf("Prometheus gets %d %.200s", status, text)
			}
			for _, port := range object[*corev1.Service](t, p.objects, "Service/weir").Spec.Ports {
				if isTLS := *port.AppProtocol == "https"; isTLS != (c.scheme == "https") {
					t.Errorf("the port %s is %s", port.Name, *port.AppProtocol)
				}
			}
			if c.scheme == "https" {
				// While clients move to TLS, some have a certificate before weir requires one, and some do not use TLS yet.
				if status, text := p.ask(t, "https", "GET", "/readyz", "", "", trusting(t, secrets["weir-client"])); status != 200 {
					t.Errorf("with a client certificate: %d %s", status, text)
				}
				if status, text := p.ask(t, "http", "GET", "/readyz", "", "", nil); status != 400 {
					t.Errorf("without TLS: %d %s", status, text)
				}
			}
			p.follow(t, secrets["weir-client"])
			if name == "plain" {
				if status, text := p.ask(t, "http", "GET", "/v1/rules", "", "0123456789abcdef", nil); status != 200 || !strings.Contains(text, `"api"`) {
					t.Errorf("the rules are %d %s", status, text)
				}
				if status, _ := p.ask(t, "http", "GET", "/v1/rules", "", "wrong-wrong-wrong", nil); status != 401 {
					t.Errorf("with a wrong token: %d", status)
				}
			}
			p.stop(t)
			if failing := p.failing(t); len(failing) != 3 {
				t.Errorf("of a pod that has stopped, only these probes fail: %q", failing)
			}
		})
	}
}

// With the rules in Redis, two releases share them, and a container that starts again without Redis has
// the rules that it had.
func TestRedis(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "redis.sock")
	redis := exec.Command("redis-server", "--port", "0", "--unixsocket", socket, "--save", "")
	redis.Dir = t.TempDir()
	log := new(bytes.Buffer)
	redis.Stdout = log
	if err := redis.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { redis.Process.Kill(); redis.Wait() })
	waitFor(t, "Redis", func() bool {
		c, err := net.Dial("unix", socket)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	values := `
store: {url: "redis+unix://` + socket + `?timeout=10s"}
tokens: {content: "alice admin 0123456789abcdef"}
rules: {inRedis: true}`
	p := newPod(t, values, nil)
	p.start(t)
	const document = `{"rules": [{"id": "api", "key": "user", "limit": "5/1h", "on_failure": "local"}]}`
	if status, text := p.ask(t, "http", "PUT", "/v1/rules", document, "0123456789abcdef", nil); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	waitFor(t, "a copy of the rules", func() bool {
		seen, err := os.ReadFile(filepath.Join(p.root, "var/lib/weir/rules.seen.yaml"))
		return err == nil && strings.Contains(string(seen), `"api"`)
	})
	// A second release with TLS, beside the first, has the same rules and usage.
	secrets := certificates(t)
	second := newPod(t, values+"\ntls: {existingSecret: weir-server}", secrets)
	second.start(t)
	waitFor(t, "the second release", func() bool { return second.failing(t) == nil })
	for _, c := range []struct {
		pod       *pod
		remaining string
	}{{p, `"remaining":4`}, {second, `"remaining":3`}, {p, `"remaining":2`}} {
		status, text := c.pod.ask(t, c.pod.scheme, "POST", "/v1/check", `{"user": "alice"}`, "0123456789abcdef", trusting(t, secrets["weir-client"]))
		if status != 200 || !strings.Contains(text, c.remaining) {
			t.Errorf("%s: %d %s, want %s", c.pod.scheme, status, text, c.remaining)
		}
	}
	second.stop(t)
	p.stop(t)
	redis.Process.Kill()
	redis.Wait()
	p.start(t)
	for _, fails := range p.failing(t) {
		t.Error(fails)
	}
	status, text := p.ask(t, "http", "POST", "/v1/check", `{"user": "alice"}`, "0123456789abcdef", nil)
	if status != 200 || !strings.Contains(text, `"limit":5`) || !strings.Contains(text, `"degraded":true`) {
		t.Errorf("%d %s", status, text)
	}
}

// waitFor asks again and again until something is so.
func waitFor(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited a minute for %s", what)
		}
	}
}
