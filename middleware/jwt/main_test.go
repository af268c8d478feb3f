package jwt

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
)

func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }

var (
	ecKeys = sync.OnceValue(func() (keys [3]*ecdsa.PrivateKey) {
		for i := range keys {
			keys[i], _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		}
		return keys
	})
	rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
		k, _ := rsa.GenerateKey(rand.Reader, 2048)
		return k
	})
)

// provider is an issuer on this machine.
type provider struct {
	*httptest.Server
	keys    atomic.Value // []byte
	fetches atomic.Int64 // of keys
	handler atomic.Pointer[http.HandlerFunc]
}

func newProvider(t testing.TB, keys ...jose.JSONWebKey) *provider {
	p := &provider{}
	p.publish(keys...)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := p.handler.Load(); h != nil {
			(*h)(w, r)
			return
		}
		switch r.URL.Path {
		case "/.well-known/openid-configuration":
			_ = json.NewEncoder(w).Encode(map[string]string{"issuer": p.URL, "jwks_uri": p.URL + "/keys"})
		case "/keys":
			p.fetches.Add(1)
			_, _ = w.Write(p.keys.Load().([]byte))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *provider) publish(keys ...jose.JSONWebKey) {
	text, err := json.Marshal(jose.JSONWebKeySet{Keys: keys})
	if err != nil {
		panic(err)
	}
	p.keys.Store(text)
}

// answer replaces what the provider does.
func (p *provider) answer(h http.HandlerFunc) { p.handler.Store(&h) }

func ecJWK(n int, id string) jose.JSONWebKey {
	return jose.JSONWebKey{Key: ecKeys()[n].Public(), KeyID: id, Use: "sig"}
}

// claims are those of a token that is valid now.
type claims = map[string]any

func (p *provider) claims(more claims) claims {
	now := time.Now().Unix()
	all := claims{"iss": p.URL, "aud": "api", "sub": "ann", "exp": now + 600, "iat": now}
	for name, value := range more {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	return all
}

// sign makes a token.
func sign(t testing.TB, a jose.SignatureAlgorithm, key any, id string, c any, headers ...claims) string {
	t.Helper()
	o := (&jose.SignerOptions{}).WithType("JWT")
	if id != "" {
		o.WithHeader("kid", id)
	}
	for _, h := range headers {
		for name, value := range h {
			o.WithHeader(jose.HeaderKey(name), value)
		}
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: a, Key: key}, o)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	jws, err := signer.Sign(text)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jws.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// token is a token of the first key.
func (p *provider) token(t testing.TB, more claims) string {
	return sign(t, jose.ES256, ecKeys()[0], "one", p.claims(more))
}

func newVerifier(t testing.TB, o Options) *Verifier {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	v, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// loaded is a verifier of a provider that has its keys.
func loaded(t testing.TB, p *provider, o Options) *Verifier {
	t.Helper()
	if o.Issuers == nil {
		o.Issuers = []Issuer{{URL: p.URL, Audience: []string{"api"}}}
	}
	v := newVerifier(t, o)
	if err := v.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return v
}

// expect verifies a token twice: the second time it may be remembered.
func expect(t *testing.T, v *Verifier, token string, want result) *rule.Claims {
	t.Helper()
	var claims *rule.Claims
	for range 2 {
		c, got := v.judge([]string{"Bearer " + token})
		if got != want {
			t.Errorf("the token is %s, want %s", texts[got].name, texts[want].name)
		}
		claims = c
	}
	return claims
}

// until waits for a condition that another goroutine brings about.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-t.Context().Done():
			t.Fatal(what)
		case <-tick.C:
		}
	}
}
