package envoyxds

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	configv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"

	"github.com/weirhq/weir/internal/envoy/envoyconfig"
	"github.com/weirhq/weir/internal/trust"
)

const (
	edge = "edge.user: unit=MINUTE requests_per_unit=5, shadow_mode: false, quota_mode: false\n"
	mail = "mail.user: unit=MINUTE requests_per_unit=7, shadow_mode: false, quota_mode: false\n"
)

// What comes is in force as a whole or not at all, and every answer says which.
func TestUpdates(t *testing.T) {
	server := newControlPlane(t)
	var installed []string
	headers := filepath.Join(t.TempDir(), "headers")
	if err := os.WriteFile(headers, []byte("# for the control plane\nX-Key: k:1\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := begin(t, Options{
		Server: server.address, NodeID: "me", NodeMetadata: map[string]string{"zone": "a"}, HeaderFile: headers,
		Read: envoyconfig.Options{Install: func(c *envoyconfig.Config) { installed = append(installed, dump(c)) }},
	})
	first := server.next()
	if first.Node.Id != "me" || first.Node.Metadata.Fields["zone"].GetStringValue() != "a" || first.TypeUrl != TypeURL ||
		len(first.ResourceNames) > 0 || first.VersionInfo != "" || first.ResponseNonce != "" || first.ErrorDetail != nil {
		t.Errorf("the first request is %v", first)
	}
	if md := <-server.headers; md.Get("x-key")[0] != "k:1" {
		t.Errorf("the headers are %v", md)
	}
	want := func(version, config string, accepted, rejected uint64) {
		t.Helper()
		if got := s.State(); got != (State{true, version, accepted, rejected}) {
			t.Errorf("%+v", got)
		}
		if got := dump(s.Config()); got != config {
			t.Errorf("in force is\n%swant\n%s", got, config)
		}
	}
	want("", "none", 0, 0)

	if r := server.ask("1", domain("edge", 5), domain("mail", 7)); r.ErrorDetail != nil || r.VersionInfo != "1" {
		t.Errorf("%v", r)
	}
	want("1", edge+mail, 1, 0)
	// The same in another order is not news.
	if r := server.ask("2", domain("mail", 7), domain("edge", 5)); r.ErrorDetail != nil || r.VersionInfo != "2" {
		t.Errorf("%v", r)
	}
	want("2", edge+mail, 2, 0)

	// A bad domain keeps the good one out, too.
	bad := domain("mail", 7)
	bad.Descriptors[0].Descriptors = []*configv3.RateLimitDescriptor{{Key: "path", Value: "/", RateLimit: &configv3.RateLimitPolicy{}}, {}}
	r := server.ask("3", domain("edge", 50), bad)
	if r.VersionInfo != "2" || r.ErrorDetail.GetMessage() != `resource of mail: error: mail.user.path_/: unit: required; write second, minute, hour, day, week, month, year, or a period such as 10s
resource of mail: error: mail.user.descriptors[1]: key: required; write the key of the entry that Envoy sends, such as remote_address` {
		t.Errorf("%v", r)
	}
	want("2", edge+mail, 2, 1)
	if len(s.paused()) > 0 {
		t.Error("a first rejection was delayed")
	}
	// Control planes that insist are answered more and more slowly.
	for range 8 {
		if r := server.ask("3", domain("edge", 50), bad); r.ErrorDetail == nil {
			t.Errorf("%v", r)
		}
	}
	pauses := s.paused()
	for i, least := range []time.Duration{1, 2, 4, 8, 16, 30, 30, 30} {
		least *= time.Second
		if pauses[i] < least*8/10 || pauses[i] > least*12/10 {
			t.Errorf("pause %d is %v", i, pauses[i])
		}
	}
	want("2", edge+mail, 2, 9)
	// What is in force already ends the trouble.
	server.ask("4", domain("edge", 5), domain("mail", 7))
	want("4", edge+mail, 3, 9)
	server.ask("3", bad)
	server.ask("3", bad)
	if pauses := s.paused(); len(pauses) != 9 || pauses[8] > 1200*time.Millisecond {
		t.Errorf("after another rejection, the pauses are %v", pauses)
	}
	// A domain that is not there any more is gone, and an empty set limits nothing.
	server.ask("5", domain("mail", 7))
	want("5", mail, 4, 11)
	server.ask("6")
	want("6", "", 5, 11)

	var story []string
	for _, u := range s.told() {
		line := u.Version + " " + strings.ReplaceAll(dump(u.Config), "\n", " ")
		if u.Err != nil {
			line += u.Err.Error()
		}
		story = append(story, line)
	}
	both := strings.ReplaceAll(edge+mail, "\n", " ")
	wantBad := "3 " + both + "envoy: resource of mail: error: mail.user.path_/: unit: required; write second, minute, hour, day, week, month, year, or a period such as 10s, and another error"
	wantStory := []string{
		"1 " + both, wantBad,
		"4 " + both, wantBad, "5 " + strings.ReplaceAll(mail, "\n", " "), "6 ",
	}
	if strings.Join(story, "\n") != strings.Join(wantStory, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(story, "\n"), strings.Join(wantStory, "\n"))
	}
	if got := strings.Join(installed, "|"); got != edge+mail+"|"+mail+"|" {
		t.Errorf("installed were %s", got)
	}
}

// The configuration stays while the control plane is unavailable, attempts become rare, and
// the next answer makes them frequent again. A control plane that counts its versions from
// the beginning is believed.
func TestReconnect(t *testing.T) {
	server := newControlPlane(t)
	s := begin(t, Options{Server: server.address})
	server.next()
	server.ask("1", domain("edge", 5))
	for range 7 {
		server.send(nil)
		if r := server.next(); r.VersionInfo != "" || r.ResponseNonce != "" || r.Node.Id != "default" {
			t.Errorf("the first request of a stream is %v", r)
		}
		if dump(s.Config()) != edge {
			t.Error("the configuration is gone")
		}
	}
	if pauses := s.paused(); len(pauses) != 7 || pauses[0] > 1200*time.Millisecond || pauses[6] < 24*time.Second || pauses[6] > 36*time.Second {
		t.Errorf("the pauses are %v", pauses)
	}
	server.ask("1", domain("mail", 7))
	if dump(s.Config()) != mail || s.State().Version != "1" {
		t.Errorf("in force is %s", dump(s.Config()))
	}
	server.send(nil)
	server.next()
	if pauses := s.paused(); pauses[7] > 1200*time.Millisecond {
		t.Errorf("after an answer, the pause is %v", pauses[7])
	}
	if text := s.logged(); strings.Count(text, `msg="connected to the xDS server"`) != 9 || strings.Count(text, `msg="the xDS server is unavailable; weir keeps its configuration and tries again"`) != 8 {
		t.Errorf("the log is\n%s", text)
	}
}

// A server that is not there is mentioned once.
func TestUnavailable(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	attempts := 0
	s := &subject{}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	o := Options{Server: address, Pause: func(context.Context, time.Duration) error {
		if attempts++; attempts == 5 {
			stop()
		}
		return nil
	}}
	o.Logger = newLogger(s)
	client, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	client.Run(ctx)
	if text := s.logged(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "connection refused") || attempts != 5 {
		t.Errorf("after %d attempts the log is\n%s", attempts, text)
	}
	if client.State().Connected {
		t.Error("it is connected")
	}
}

// What was accepted once can be used after a restart, until something newer comes.
func TestRestore(t *testing.T) {
	server := newControlPlane(t)
	before := begin(t, Options{Server: server.address})
	server.next()
	var none, saved bytes.Buffer
	if err := before.Snapshot(&none); err != nil || none.Len() > 0 {
		t.Errorf("%v, %d bytes", err, none.Len())
	}
	server.ask("9", domain("edge", 5))
	server.ask("10", &configv3.RateLimitConfig{})
	if err := before.Snapshot(&saved); err != nil {
		t.Fatal(err)
	}
	client, err := New(Options{Server: server.address})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Restore(&none); err != nil || client.Config() != nil {
		t.Errorf("nothing is %v", err)
	}
	for _, bad := range []string{"nonsense", saved.String()[:saved.Len()-1], strings.Repeat(" ", MaxBytes+1)} {
		if client.Restore(strings.NewReader(bad)) == nil || client.Config() != nil {
			t.Errorf("%d bytes were taken", len(bad))
		}
	}
	// The version is not known, so that the control plane sends what is newest.
	if err := client.Restore(&saved); err != nil || dump(client.Config()) != edge || client.State() != (State{}) {
		t.Errorf("%v: %s, %+v", err, dump(client.Config()), client.State())
	}
}

// The address and the files of TLS are checked before anything is opened.
func TestNew(t *testing.T) {
	if _, err := New(Options{Server: "control-plane"}); err == nil || !strings.Contains(err.Error(), "write host:port") {
		t.Error(err)
	}
	if _, err := New(Options{Server: "x:1", TLS: trust.ClientCert{CertFile: "cert.pem"}.TLS}); err == nil || !strings.Contains(err.Error(), "set both files") {
		t.Error(err)
	}
	headers := filepath.Join(t.TempDir(), "headers")
	for _, text := range []string{"authorization s3cret", "grpc-timeout: 1s", "a: b\nx y: s3cret", "a: s3cret\x01", strings.Repeat("a: s3cret\n", maxHeaders)} {
		if err := os.WriteFile(headers, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := New(Options{Server: "x:1", HeaderFile: headers}); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%.30q: %v", text, err)
		}
	}
	if _, err := New(Options{Server: "x:1", HeaderFile: headers + "x"}); err == nil {
		t.Error("a file that is not there was read")
	}
}

// A control plane that sends one version after the other is slowed down, and cannot put a
// version of any length into the log.
func TestEndlessVersions(t *testing.T) {
	server := newControlPlane(t)
	s := begin(t, Options{Server: server.address})
	server.next()
	for i := range uint32(20) {
		server.ask(fmt.Sprint(i), domain("edge", 1+i))
	}
	server.ask(strings.Repeat("v", 100_000), domain("edge", 1))
	s.mu.Lock()
	breaths := s.breaths
	s.mu.Unlock()
	if breaths < 20 {
		t.Errorf("between 21 responses were %d pauses", breaths)
	}
	told := s.told()
	if last := told[len(told)-1]; last.Err == nil || len(last.Version) > 2*maxVersion {
		t.Errorf("the version that is told has %d bytes: %v", len(last.Version), last.Err)
	}
}
