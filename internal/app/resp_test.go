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

	"github.com/weirhq/weir/internal/certs"
)

// Redis clients are answered over TLS, by token, with the limits of the store. Metrics and
// statistics see it.
func TestRESP(t *testing.T) {
	dir := t.TempDir()
	pair := certs.Options{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
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
				o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
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
