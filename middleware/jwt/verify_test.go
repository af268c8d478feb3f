package jwt

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/weirhq/weir/rule"
)

func TestVerify(t *testing.T) {
	p := newProvider(t, ecJWK(0, "one"))
	v := loaded(t, p, Options{Attributes: map[string]string{
		"user": "jwt.claims.sub", "org": "jwt.claims.org", "tier": "jwt.claims.plan", "priority": "jwt.claims.prio",
	}})
	c := expect(t, v, p.token(t, claims{"org": "acme", "plan": "gold", "prio": "low"}), valid)
	if c == nil || c.User != "ann" || c.Tier != "gold" || c.Priority != rule.Low || c.Attributes["org"] != "acme" || len(c.Attributes) != 1 {
		t.Errorf("the claims are %+v", c)
	}
	now := time.Now().Unix()
	for _, ok := range []claims{
		{"aud": []string{"other", "api"}}, {"exp": now - 50}, {"nbf": now + 50, "iat": now + 50}, {"sub": nil}, {"plan": nil},
		{"sub": strings.Repeat("x", MaxValue)},
	} {
		expect(t, v, p.token(t, ok), valid)
	}
	for _, c := range []struct {
		claims claims
		want   result
	}{
		{claims{"aud": "other"}, wrongAudience},
		{claims{"aud": nil}, wrongAudience},
		{claims{"aud": 5}, malformed},
		{claims{"exp": nil}, noExpiry},
		{claims{"exp": now - 70}, expired},
		{claims{"exp": "never"}, malformed},
		{claims{"nbf": now + 70}, notYet},
		{claims{"iat": now + 70}, notYet},
		{claims{"iss": p.URL + "/"}, unknownIssuer},
		{claims{"iss": nil}, unknownIssuer},
		{claims{"sub": strings.Repeat("x", MaxValue+1)}, badClaims},
		{claims{"org": []string{"acme"}}, badClaims},
		{claims{"sub": []string{"ann"}}, malformed},
		{claims{"prio": "urgent"}, badClaims},
	} {
		expect(t, v, p.token(t, c.claims), c.want)
	}
}

// No claim becomes a tier or a priority unless the configuration says so.
func TestClaimsAreNotBelieved(t *testing.T) {
	p := newProvider(t, ecJWK(0, "one"))
	c := expect(t, loaded(t, p, Options{}), p.token(t, claims{"tier": "gold", "priority": "critical", "user": "root", "org": "acme"}), valid)
	if c == nil || c.User != "ann" || c.Tier != "" || c.Priority != 0 || c.Attributes != nil {
		t.Errorf("the claims are %+v", c)
	}
}

// part is a part of a token.
func part(v any) string {
	text, _ := json.Marshal(v)
	return base64.RawURLEncoding.EncodeToString(text)
}

func TestHostileTokens(t *testing.T) {
	public := jose.JSONWebKey{Key: rsaKey().Public(), KeyID: "rsa"}
	p := newProvider(t, ecJWK(0, "one"), public, jose.JSONWebKey{Key: rsaKey().Public(), KeyID: "rs384", Algorithm: "RS384"})
	v := loaded(t, p, Options{})
	good := p.token(t, nil)
	parts := strings.Split(good, ".")
	der, _ := x509.MarshalPKIXPublicKey(rsaKey().Public())
	body := part(p.claims(nil))
	expect(t, v, sign(t, jose.RS256, rsaKey(), "rsa", p.claims(nil)), valid)
	expect(t, v, sign(t, jose.PS256, rsaKey(), "rsa", p.claims(nil)), valid)
	own := jose.JSONWebKey{Key: ecKeys()[1].Public(), KeyID: "one"}
	for name, c := range map[string]struct {
		token string
		want  result
	}{
		"none":                        {part(claims{"alg": "none"}) + "." + body + ".", badAlgorithm},
		"none with a signature":       {part(claims{"alg": "none", "kid": "one"}) + "." + body + "." + parts[2], badAlgorithm},
		"None":                        {part(claims{"alg": "None"}) + "." + body + "." + parts[2], badAlgorithm},
		"no algorithm":                {part(claims{"kid": "one"}) + "." + body + "." + parts[2], badAlgorithm},
		"HMAC with the public key":    {sign(t, jose.HS256, der, "rsa", p.claims(nil)), badAlgorithm},
		"another key with the id":     {sign(t, jose.ES256, ecKeys()[1], "one", p.claims(nil)), badSignature},
		"an EC key's id with RSA":     {sign(t, jose.RS256, rsaKey(), "one", p.claims(nil)), unknownKey},
		"an algorithm not of the key": {sign(t, jose.RS256, rsaKey(), "rs384", p.claims(nil)), unknownKey},
		"an algorithm not of issuers": {sign(t, jose.RS384, rsaKey(), "rs384", p.claims(nil)), badAlgorithm},
		"an unknown key":              {sign(t, jose.ES256, ecKeys()[1], "two", p.claims(nil)), unknownKey},
		"its own key":                 {sign(t, jose.ES256, ecKeys()[1], "one", p.claims(nil), claims{"jwk": own}), badSignature},
		"its own key's URL":           {sign(t, jose.ES256, ecKeys()[1], "two", p.claims(nil), claims{"jku": p.URL + "/mine"}), unknownKey},
		"crit":                        {sign(t, jose.ES256, ecKeys()[0], "one", p.claims(nil), claims{"crit": []string{"exp"}, "exp": 1}), badHeader},
		"crit without names":          {sign(t, jose.ES256, ecKeys()[0], "one", p.claims(nil), claims{"crit": []string{}}), badHeader},
		"b64":                         {part(claims{"alg": "ES256", "kid": "one", "b64": false, "crit": []string{"b64"}}) + "." + body + "." + parts[2], badHeader},
		"a token for logging out":     {sign(t, jose.ES256, ecKeys()[0], "one", p.claims(nil), claims{"typ": "logout+jwt"}), badHeader},
		"a type that is no text":      {sign(t, jose.ES256, ecKeys()[0], "one", p.claims(nil), claims{"typ": 1}), badHeader},
		"an id that is no text":       {part(claims{"alg": "ES256", "kid": 1}) + "." + body + "." + parts[2], malformed},
		"a name twice in the header":  {base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","alg":"ES256","kid":"one"}`)) + "." + body + "." + parts[2], malformed},
		"changed claims":              {parts[0] + "." + part(p.claims(claims{"sub": "eve"})) + "." + parts[2], badSignature},
		"cut":                         {good[:len(good)-4], badSignature},
		"no signature":                {parts[0] + "." + parts[1] + ".", badSignature},
		"two parts":                   {parts[0] + "." + parts[1], malformed},
		"five parts":                  {good + ".x.y", malformed},
		"no token":                    {"", malformed},
		"an API key":                  {"sk-0123456789abcdef", malformed},
		"two tokens":                  {good + ", " + good, malformed},
		"1 MB":                        {strings.Repeat("x", 1<<20), tooLarge},
		"1 MB of claims":              {parts[0] + "." + strings.Repeat("x", 1<<20) + "." + parts[2], tooLarge},
		"deep":                        {parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(strings.Repeat("[", 8000))) + "." + parts[2], malformed},
	} {
		t.Run(name, func(t *testing.T) { expect(t, v, c.token, c.want) })
	}
	for _, typ := range []string{"at+jwt", "application/at+jwt", "AT+JWT", "jwt"} {
		expect(t, v, sign(t, jose.ES256, ecKeys()[0], "one", p.claims(nil), claims{"typ": typ}), valid)
	}
}

// Each issuer has its own keys and algorithms.
func TestIssuersAreApart(t *testing.T) {
	p, q := newProvider(t, ecJWK(0, "one")), newProvider(t, ecJWK(1, "one"), jose.JSONWebKey{Key: rsaKey().Public(), KeyID: "rsa"})
	v := loaded(t, p, Options{Issuers: []Issuer{
		{URL: p.URL, Audience: []string{"api"}, Algorithms: []string{"ES256"}}, {URL: q.URL, Audience: []string{"api", "shop"}, Algorithms: []string{"RS256", "ES256"}},
	}})
	expect(t, v, sign(t, jose.ES256, ecKeys()[0], "one", p.claims(nil)), valid)
	expect(t, v, sign(t, jose.ES256, ecKeys()[1], "one", q.claims(claims{"aud": "shop"})), valid)
	expect(t, v, sign(t, jose.ES256, ecKeys()[0], "one", q.claims(nil)), badSignature)
	expect(t, v, sign(t, jose.ES256, ecKeys()[1], "one", p.claims(nil)), badSignature)
	expect(t, v, sign(t, jose.RS256, rsaKey(), "rsa", p.claims(nil)), badAlgorithm)
	expect(t, v, p.token(t, claims{"aud": "shop"}), wrongAudience)
}

// A token without the id of a key is valid if only one key can be meant.
func TestKeyWithoutID(t *testing.T) {
	p := newProvider(t, ecJWK(0, "one"), jose.JSONWebKey{Key: rsaKey().Public()})
	v := loaded(t, p, Options{})
	expect(t, v, sign(t, jose.ES256, ecKeys()[0], "", p.claims(nil)), valid)
	expect(t, v, sign(t, jose.RS256, rsaKey(), "", p.claims(nil)), valid)
	p.publish(ecJWK(0, "one"), ecJWK(1, "two"))
	expect(t, loaded(t, p, Options{}), sign(t, jose.ES256, ecKeys()[0], "", p.claims(nil)), unknownKey)
}

func TestHeaderAuthorization(t *testing.T) {
	p := newProvider(t, ecJWK(0, "one"))
	free, required := loaded(t, p, Options{}), loaded(t, p, Options{Required: true})
	token := p.token(t, nil)
	for _, form := range []string{"Bearer %s", "bearer  %s", " BEARER %s ", "Bearer %s\t"} {
		for _, v := range []*Verifier{free, required} {
			if c, err := v.Verify([]string{fmt.Sprintf(form, token)}); err != nil || c == nil || c.User != "ann" {
				t.Errorf("%q: %v, %v", form, c, err)
			}
		}
	}
	for _, c := range []struct {
		value   string
		missing bool
	}{{"", true}, {"Basic " + token, true}, {"Bearer", false}, {"Bearer x", false}, {token, true}, {"Bearer\t" + token, true}} {
		if claims, err := free.Verify([]string{c.value}); claims != nil || err != nil {
			t.Errorf("%.20q: %v, %v", c.value, claims, err)
		}
		_, err := required.Verify([]string{c.value})
		if wrong, ok := errors.AsType[*rule.TokenError](err); !ok || wrong.Missing != c.missing || strings.Contains(wrong.Error(), token) {
			t.Errorf("%.20q: %v", c.value, err)
		}
	}
	if claims, err := free.Verify(nil); claims != nil || err != nil {
		t.Errorf("%v, %v", claims, err)
	}
	for _, v := range []*Verifier{free, required} {
		_, err := v.Verify([]string{"Bearer " + token, "Bearer " + token})
		if _, ok := errors.AsType[*rule.ValuesError](err); !ok {
			t.Errorf("two headers: %v", err)
		}
	}
	if n := free.Results(); n["valid"] != 4 || n["missing"] != 5 || n["malformed"] != 2 {
		t.Errorf("the results are %v", n)
	}
}

// While the keys of an issuer are not known, nobody is told that a token is wrong.
func TestNoKeys(t *testing.T) {
	p := newProvider(t, ecJWK(0, "one"))
	v := newVerifier(t, Options{Required: true, Issuers: []Issuer{{URL: p.URL, Audience: []string{"api"}}}})
	_, err := v.Verify([]string{"Bearer " + p.token(t, nil)})
	if wrong, ok := errors.AsType[*rule.RequestError](err); !ok || wrong.Status != http.StatusServiceUnavailable {
		t.Errorf("%v", err)
	}
}

// A token is remembered until it expires, and in a bounded table.
func TestRemembered(t *testing.T) {
	p := newProvider(t, ecJWK(0, "one"))
	v := loaded(t, p, Options{Remember: 10})
	token := p.token(t, nil)
	first := expect(t, v, token, valid)
	if again, _ := v.judge([]string{"Bearer " + token}); again != first {
		t.Error("a remembered token was verified again")
	}
	for i := range 50 {
		expect(t, v, p.token(t, claims{"jti": strconv.Itoa(i)}), valid)
		if n := len(v.verified.young) + len(v.verified.old); n > 10 {
			t.Fatalf("%d tokens are remembered", n)
		}
		if again, _ := v.judge([]string{"Bearer " + token}); again != first {
			t.Fatal("a token in use was forgotten")
		}
	}
	v.now = func() time.Time { return time.Now().Add(600*time.Second + Leeway + 2*time.Second) }
	expect(t, v, token, expired)
}
