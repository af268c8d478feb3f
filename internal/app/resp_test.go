package app

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weirhq/weir/internal/trust"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
)

// Redis clients are answered over TLS, by token, with the limits of the store. Metrics and
// statistics see it.
func TestRESP(t *testing.T) {
	dir := t.TempDir()
	pair := trust.Options{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	writePair(t, pair, 1)
	secret := strings.Repeat("s", 32)
	o, _ := prepared(t, Options{RESP: "127.0.0.1:0", TLS: pair, Token: secret}, perUser)
	a := started(t, o)
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{a.Addrs().RESP.String()}, TLSConfig: &tls.Config{InsecureSkipVerify: true}, Password: secret,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	do := func(words ...string) rueidis.RedisResult {
		return client.Do(t.Context(), client.B().Arbitrary(words...).Build())
	}
	for _, want := range []int64{0, 0, 1} {
		answer, err := do("CL.THROTTLE", "k", "1", "1", "3600").AsIntSlice()
		if err != nil || answer[0] != want {
			t.Errorf("got %v, %v, want %d", answer, err, want)
		}
	}
	check, err := do("WEIR.CHECK", "user", "alice").AsMap()
	if err != nil {
		t.Fatal(err)
	}
	allowed := check["allowed"]
	if yes, err := allowed.AsBool(); err != nil || !yes {
		t.Errorf("alice: %v, %v", yes, err)
	}
	if err := do("WEIR.RESET", "key", "user:alice").Error(); err != nil {
		t.Error(err)
	}

	web := "https://" + a.Addrs().HTTP.String()
	insecure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	_, body := ask(t, insecure, "GET", web+"/metrics", "")
	for _, want := range []string{
		`weir_decisions_total{outcome="denied",rule="resp:cl.throttle"} 1`,
		`weir_resp_commands_total{command="cl.throttle",result="ok"} 3`,
		`weir_requests_total{outcome="allowed"} 3`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("/metrics has no %s", want)
		}
	}
	eventually(t, "a denial in the statistics", func() bool {
		_, body := ask(t, insecure, "GET", web+"/v1/stats/summary", "", "Authorization", "Bearer "+secret)
		return strings.Contains(body, `"resp:cl.throttle"`)
	})

	if err := a.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	if err := do("PING").Error(); err == nil {
		t.Error("it still answers")
	}
}

// On an address that others can reach, there must be tokens.
func TestRESPTokens(t *testing.T) {
	for address, want := range map[string]string{
		"0.0.0.0:6380":   "--resp 0.0.0.0:6380 is reachable from other machines, so tokens are required; set --admin-token-file or WEIR_ADMIN_TOKEN (openssl rand -hex 32 makes a token), or listen on 127.0.0.1:6380",
		"6380":           `--resp: "6380" is not an address; write host:port, as in 127.0.0.1:6380, or off`,
		"127.0.0.1:6380": "",
		"":               "",
	} {
		for _, signIn := range []string{"", "X-User"} {
			o, _ := prepared(t, Options{RESP: address, SignInHeader: signIn}, perUser)
			if signIn != "" {
				o.Limits.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
			}
			got := ""
			if _, err := New(o); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("%q: got %q, want %q", address, got, want)
			}
		}
	}
}

// As long as no rules could be read, every protocol says that its answers are degraded.
func TestDegradedBeforeRules(t *testing.T) {
	o, _ := prepared(t, Options{RESP: "127.0.0.1:0", Store: "redis://127.0.0.1:1?timeout=1s", Rules: InRedis}, "")
	a := started(t, o)
	url := "http://" + a.Addrs().HTTP.String()
	for path, body := range map[string]string{"/v1/check": `{"user":"alice","cost":{"tokens":5}}`, "/v1/reserve": `{"user":"alice"}`} {
		if status, answer := ask(t, nil, "POST", url+path, body); status != http.StatusOK || !strings.Contains(answer, `"allowed":true`) || !strings.Contains(answer, `"degraded":true`) {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
	resp, err := http.Get(url + "/v1/authz")
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body.Close(); resp.StatusCode != http.StatusOK || resp.Header.Get("X-RateLimit-Degraded") != "1" {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	if status, answer := ask(t, nil, "GET", url+"/readyz", ""); status != http.StatusServiceUnavailable {
		t.Errorf("%d %s", status, answer)
	}

	conn, err := grpc.NewClient("passthrough:///"+a.Addrs().GRPC.String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if v, err := pb.NewLimiterClient(conn).Check(t.Context(), &pb.CheckRequest{User: "alice"}); err != nil || !v.GetAllowed() || !v.GetDegraded() {
		t.Errorf("%v, %v", v, err)
	}

	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{a.Addrs().RESP.String()}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	check, err := client.Do(t.Context(), client.B().Arbitrary("WEIR.CHECK", "user", "alice").Build()).AsMap()
	degraded := check["degraded"]
	if yes, failed := degraded.AsBool(); err != nil || failed != nil || !yes {
		t.Errorf("%v, %v, %v", check, err, failed)
	}
}
