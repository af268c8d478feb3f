package jwt

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// run lets a verifier fetch keys until the test ends.
func run(t *testing.T, v *Verifier, between time.Duration) {
	for _, i := range v.issuers {
		i.least = between
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = v.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
}

// When an issuer changes its keys, the first token with a new one has them fetched. Tokens of a
// key that is gone are forgotten.
func TestRotation(t *testing.T) {
	p := newProvider(t, ecJWK(0, "one"))
	v := loaded(t, p, Options{})
	i := v.issuers[p.URL]
	loaded := i.fetched.Load()
	run(t, v, 0)
	until(t, "the keys were not fetched", func() bool { return i.fetched.Load() != loaded }) // the next time is in minutes
	old := p.token(t, nil)
	expect(t, v, old, valid)
	p.publish(ecJWK(1, "two"))
	fresh := sign(t, jose.ES256, ecKeys()[1], "two", p.claims(nil))
	expect(t, v, old, valid) // nobody knows yet
	until(t, "the new key was not fetched", func() bool {
		_, got := v.judge([]string{"Bearer " + fresh})
		return got == valid
	})
	expect(t, v, old, unknownKey)
}

// Ten thousand ids of keys have the keys fetched once in the time that must be between two fetches.
func TestUnknownKeys(t *testing.T) {
	p := newProvider(t, ecJWK(0, "one"))
	v := loaded(t, p, Options{})
	run(t, v, time.Hour) // no fetch of its own before that
	for n := range 10_000 {
		header := part(claims{"alg": "ES256", "kid": strconv.Itoa(n)})
		if _, got := v.judge([]string{"Bearer " + header + "." + part(p.claims(nil)) + ".AAAA"}); got != unknownKey {
			t.Fatalf("the token is %s", texts[got].name)
		}
	}
	i := v.issuers[p.URL]
	if got := p.fetches.Load(); got != 1 || len(i.asked) > maxAsked || len(i.wake) > 1 {
		t.Errorf("the keys were fetched %d times, %d ids are kept", got, len(i.asked))
	}
}

// An id of which the issuer knew nothing does not make it be asked again.
func TestUnknownKeyIsAskedOnce(t *testing.T) {
	p := newProvider(t, ecJWK(0, "one"))
	v := loaded(t, p, Options{})
	i := v.issuers[p.URL]
	token := sign(t, jose.ES256, ecKeys()[1], "two", p.claims(nil))
	expect(t, v, token, unknownKey)
	if len(i.wake) != 1 {
		t.Fatal("nobody asked")
	}
	<-i.wake
	expect(t, v, token, unknownKey)
	if len(i.wake) != 0 {
		t.Error("it was asked again")
	}
	i.ask(strings.Repeat("x", MaxValue+1))
	if len(i.wake) != 0 {
		t.Error("a long id was asked for")
	}
}

// Keys are good for 24 h when the issuer cannot be reached, and so are the tokens that they verified.
func TestIssuerIsUnavailable(t *testing.T) {
	p := newProvider(t, ecJWK(0, "one"))
	v := loaded(t, p, Options{})
	began := time.Now()
	token := p.token(t, claims{"exp": began.Add(30 * time.Hour).Unix()})
	expect(t, v, token, valid)
	trouble := func(want string) {
		t.Helper()
		if got := fmt.Sprint(v.Trouble()); !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	trouble("<nil>")
	p.answer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	if err := v.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "answers with the status 502") {
		t.Errorf("%v", err)
	}
	v.now = func() time.Time { return began.Add(kept - time.Second) }
	expect(t, v, token, valid)
	trouble("outdated")
	v.now = func() time.Time { return began.Add(kept + time.Minute) }
	expect(t, v, token, noKeys)
	trouble("not valid")
	p.handler.Store(nil)
	if err := v.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect(t, v, token, valid)
}

// Hostile answers leave the keys as they were, and take bounded time and memory.
func TestHostileIssuers(t *testing.T) {
	hidden := newProvider(t, ecJWK(1, "evil"))
	for name, c := range map[string]struct {
		answer func(p *provider, w http.ResponseWriter, r *http.Request)
		want   string
	}{
		"a redirect to the loopback": {func(_ *provider, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, hidden.URL+r.URL.Path, http.StatusFound)
		}, "redirects"},
		"a redirect to metadata": {func(_ *provider, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusTemporaryRedirect)
		}, "redirects"},
		"keys elsewhere on the loopback": {func(p *provider, w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]string{"issuer": p.URL, "jwks_uri": hidden.URL + "/keys"})
		}, "set jwks"},
		"keys at the metadata": {func(p *provider, w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]string{"issuer": p.URL, "jwks_uri": "https://169.254.169.254/keys"})
		}, "set jwks"},
		"keys at the mapped metadata": {func(p *provider, w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]string{"issuer": p.URL, "jwks_uri": "https://[::ffff:169.254.169.254]/keys"})
		}, "set jwks"},
		"keys over plain http": {func(p *provider, w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]string{"issuer": p.URL, "jwks_uri": "http://192.0.2.1/keys"})
		}, "must begin with https://"},
		"keys in a file": {func(p *provider, w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]string{"issuer": p.URL, "jwks_uri": "file:///etc/passwd"})
		}, "jwks_uri"},
		"another issuer": {func(_ *provider, w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]string{"issuer": hidden.URL, "jwks_uri": hidden.URL + "/keys"})
		}, "another issuer"},
		"10 MB": {func(p *provider, w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/keys" {
				_ = json.NewEncoder(w).Encode(map[string]string{"issuer": p.URL, "jwks_uri": p.URL + "/keys"})
				return
			}
			chunk := []byte(strings.Repeat(" ", 1<<16))
			for range 160 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}, "more than 1048576 bytes"},
		"no JSON":   {func(_ *provider, w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, "not JSON"},
		"not found": {func(_ *provider, w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }, "status 404"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t, ecJWK(0, "one"))
			v := loaded(t, p, Options{})
			p.answer(func(w http.ResponseWriter, r *http.Request) { c.answer(p, w, r) })
			if err := v.Load(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
			expect(t, v, p.token(t, nil), valid)
			expect(t, v, sign(t, jose.ES256, ecKeys()[1], "evil", p.claims(nil)), unknownKey)
		})
	}
	if hidden.fetches.Load() != 0 {
		t.Error("somebody followed")
	}
}

func TestKeySets(t *testing.T) {
	set := func(keys ...any) string {
		text, _ := json.Marshal(map[string]any{"keys": keys})
		return string(text)
	}
	one := ecJWK(0, "one")
	many := make([]any, MaxKeys+1)
	for i := range many {
		many[i] = one
	}
	for name, c := range map[string]struct{ text, want string }{
		"good":                 {set(one), ""},
		"others beside it":     {set(one, map[string]string{"kty": "OKP", "crv": "X25519", "x": "AAAA"}, map[string]string{"kty": "new"}, 5), ""},
		"none":                 {set(), "none of its 0 keys"},
		"a secret":             {set(jose.JSONWebKey{Key: []byte("0123456789abcdef0123456789abcdef"), KeyID: "s"}), "none of its 1 keys"},
		"a private key":        {set(jose.JSONWebKey{Key: ecKeys()[0], KeyID: "p"}), "none of its 1 keys"},
		"a key for encryption": {set(jose.JSONWebKey{Key: ecKeys()[0].Public(), Use: "enc"}), "none of its 1 keys"},
		"a short key":          {set(map[string]string{"kty": "RSA", "e": "AQAB", "n": strings.Repeat("v", 171)}), "none of its 1 keys"},
		"a huge key":           {set(map[string]string{"kty": "RSA", "e": "AQAB", "n": strings.Repeat("v", 2000)}), "none of its 1 keys"},
		"too many":             {set(many...), "it has 101 keys"},
		"a list":               {"[]", "not a JSON Web Key Set"},
		"nothing":              {"", "not a JSON Web Key Set"},
	} {
		_, err := parseKeys([]byte(c.text))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Keys in a file are there at once, and follow it.
func TestKeysInAFile(t *testing.T) {
	p := newProvider(t, ecJWK(0, "one"))
	file := filepath.Join(t.TempDir(), "keys.json")
	write := func(text []byte) {
		if err := os.WriteFile(file+".new", text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	write(p.keys.Load().([]byte))
	v := newVerifier(t, Options{Issuers: []Issuer{{URL: p.URL, Audience: []string{"api"}, JWKS: file}}})
	token := p.token(t, nil)
	expect(t, v, token, valid)
	run(t, v, 0)
	p.publish(ecJWK(1, "two"))
	write(p.keys.Load().([]byte))
	fresh := sign(t, jose.ES256, ecKeys()[1], "two", p.claims(nil))
	until(t, "the file was not read again", func() bool {
		_, got := v.judge([]string{"Bearer " + fresh})
		return got == valid
	})
	expect(t, v, token, unknownKey)
	write([]byte("{"))
	until(t, "nobody told", func() bool {
		i := v.issuers[p.URL]
		i.mu.Lock()
		defer i.mu.Unlock()
		return i.last != ""
	})
	expect(t, v, fresh, valid)
	if p.fetches.Load() != 0 {
		t.Error("the issuer was asked")
	}
}

func TestOptions(t *testing.T) {
	good := Issuer{URL: "https://id.example.com", Audience: []string{"api"}}
	with := func(change func(*Issuer)) []Issuer {
		i := good
		change(&i)
		return []Issuer{i}
	}
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, "there are 0 issuers"},
		{Options{Issuers: []Issuer{good, good}}, "is there twice"},
		{Options{Issuers: with(func(i *Issuer) { i.URL = "" })}, "a URL is required"},
		{Options{Issuers: with(func(i *Issuer) { i.URL = "http://id.example.com" })}, "must begin with https://"},
		{Options{Issuers: with(func(i *Issuer) { i.URL = "https://a:b@id.example.com" })}, "is not a URL"},
		{Options{Issuers: with(func(i *Issuer) { i.Audience = []string{""} })}, "an audience is required"},
		{Options{Issuers: with(func(i *Issuer) { i.Algorithms = []string{"HS256"} })}, `"HS256" is not supported`},
		{Options{Issuers: with(func(i *Issuer) { i.Algorithms = []string{"none"} })}, `"none" is not supported`},
		{Options{Issuers: with(func(i *Issuer) { i.JWKS = "http://192.0.2.1/keys" })}, "must begin with https://"},
		{Options{Issuers: with(func(i *Issuer) { i.JWKS = filepath.Join(t.TempDir(), "missing") })}, "no such file"},
		{Options{Issuers: []Issuer{good}, Remember: -1}, "Remember is -1"},
		{Options{Issuers: []Issuer{good}, Attributes: map[string]string{"user": "jwt.claims."}}, `the attribute "user"`},
		{Options{Issuers: []Issuer{good}, Attributes: map[string]string{"": "jwt.claims.sub"}}, "needs a name"},
	} {
		if _, err := New(c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if _, err := New(Options{Issuers: []Issuer{good}}); err != nil {
		t.Error(err)
	}
}
