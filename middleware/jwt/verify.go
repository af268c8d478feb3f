package jwt

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
	josejson "github.com/go-jose/go-jose/v4/json"
	josejwt "github.com/go-jose/go-jose/v4/jwt"

	"github.com/weirhq/weir/rule"
)

// result is what became of a token.
type result uint8

const (
	valid result = iota
	missing
	malformed
	tooLarge
	badHeader
	badAlgorithm
	unknownIssuer
	noKeys
	unknownKey
	badSignature
	wrongAudience
	noExpiry
	expired
	notYet
	badClaims
	results // how many there are
)

type counter = atomic.Int64

// texts are a name for each result, and what a client may know of it.
var texts = [results]struct{ name, says string }{
	valid:         {name: "valid"},
	missing:       {"missing", "An access token is required; send it as a bearer token in the header Authorization."},
	malformed:     {"malformed", "The access token is invalid: it is not a signed JSON Web Token."},
	tooLarge:      {"too_large", "The access token is invalid: it is too large."},
	badHeader:     {"header", "The access token is invalid: its header has a type or an extension that is not supported."},
	badAlgorithm:  {"algorithm", "The access token is invalid: its algorithm is not one of its issuer."},
	unknownIssuer: {"issuer", "The access token is invalid: its issuer is unknown."},
	noKeys:        {"no_keys", "The keys of the token's issuer are not available; try again soon."},
	unknownKey:    {"key", "The access token is invalid: its key is unknown."},
	badSignature:  {"signature", "The access token is invalid: its signature is wrong."},
	wrongAudience: {"audience", "The access token is invalid: it is for another audience."},
	noExpiry:      {"no_expiry", "The access token is invalid: it has no expiry."},
	expired:       {"expired", "The access token is invalid: it has expired."},
	notYet:        {"not_yet", "The access token is invalid: it is not valid yet."},
	badClaims:     {"claims", "The access token is invalid: its claims cannot be used."},
}

// Verify returns what the token of a request says, which is the one value of its header Authorization. It
// returns nil if there is no valid token and none is required. Otherwise the error is a
// [rule.TokenError], a [rule.RequestError] if the keys of the issuer could not be fetched yet, or
// always a [rule.ValuesError] if there are several values, because servers disagree about which
// one they use.
func (v *Verifier) Verify(authorization []string) (*rule.Claims, error) {
	if len(authorization) > 1 {
		return nil, &rule.ValuesError{What: "header Authorization"}
	}
	claims, why := v.judge(authorization)
	v.results[why].Add(1)
	switch {
	case why == valid || !v.required:
		return claims, nil
	case why == noKeys:
		return nil, &rule.RequestError{Status: http.StatusServiceUnavailable, Reason: texts[why].says}
	}
	return nil, &rule.TokenError{Missing: why == missing, Reason: texts[why].says}
}

// Results returns how many requests had which kind of token, by its name, such as "valid", "missing" or
// "expired".
func (v *Verifier) Results() map[string]int64 {
	all := make(map[string]int64, results)
	for i := range v.results {
		all[texts[i].name] = v.results[i].Load()
	}
	return all
}

// judge looks a token up among those that were verified before, and otherwise verifies it.
func (v *Verifier) judge(authorization []string) (*rule.Claims, result) {
	token, found := bearer(authorization)
	switch {
	case !found:
		return nil, missing
	case len(token) > MaxToken:
		return nil, tooLarge
	}
	var buffer [2 << 10]byte // a conversion would be a copy elsewhere
	now, sum := v.now(), sha256.Sum256(append(buffer[:0], token...))
	if e := v.verified.findToken(sum); e != nil && e.until.After(now) && e.by == e.issuer.keys(now) {
		return e.claims, valid
	}
	e, why := v.verify(token, now)
	if why != valid {
		return nil, why
	}
	v.verified.put(sum, e)
	return e.claims, valid
}

// bearer is the token of RFC 6750, if there is one.
func bearer(authorization []string) (string, bool) {
	if len(authorization) == 0 {
		return "", false
	}
	scheme, token, _ := strings.Cut(strings.Trim(authorization[0], " \t"), " ")
	return strings.Trim(token, " \t"), strings.EqualFold(scheme, "bearer")
}

// verify finds out whether a token is valid now.
func (v *Verifier) verify(token string, now time.Time) (*verified, result) {
	jws, err := jose.ParseSignedCompact(token, v.algorithms)
	if err != nil {
		if _, unexpected := errors.AsType[*jose.ErrUnexpectedSignatureAlgorithm](err); unexpected {
			return nil, badAlgorithm
		}
		return nil, malformed
	}
	header := &jws.Signatures[0].Protected
	if !usual(header) {
		return nil, badHeader
	}
	var told josejwt.Claims
	if josejson.Unmarshal(jws.UnsafePayloadWithoutVerification(), &told) != nil {
		return nil, malformed
	}
	i := v.issuers[told.Issuer] // which only chooses the keys; one with other keys fails below
	if i == nil {
		return nil, unknownIssuer
	}
	if !slices.Contains(i.algorithms, jose.SignatureAlgorithm(header.Algorithm)) {
		return nil, badAlgorithm
	}
	set := i.keys(now)
	if set == nil {
		return nil, noKeys
	}
	candidates := set.findKeys(header.KeyID, jose.SignatureAlgorithm(header.Algorithm))
	if len(candidates) == 0 {
		if !set.has(header.KeyID) {
			i.ask(header.KeyID)
		}
		return nil, unknownKey
	}
	for _, k := range candidates {
		if payload, err := jws.Verify(k.Key); err == nil {
			return v.readClaims(i, set, payload, &told, now)
		}
	}
	return nil, badSignature
}

// usual reports whether a header says nothing that would have to be understood, and means an access
// token or leaves that open. Tokens of other kinds, as for logging out, may have the same keys.
func usual(h *jose.Header) bool {
	for name, value := range h.ExtraHeaders {
		switch name {
		case "crit", "b64":
			return false
		case jose.HeaderType:
			kind, ok := value.(string)
			kind = strings.TrimPrefix(strings.ToLower(kind), "application/")
			if !ok || kind != "jwt" && kind != "at+jwt" {
				return false
			}
		}
	}
	return true
}

// readClaims takes from the claims of a token, whose signature was verified, what is configured.
func (v *Verifier) readClaims(i *issuer, set *keySet, payload []byte, told *josejwt.Claims, now time.Time) (*verified, result) {
	switch err := told.ValidateWithLeeway(josejwt.Expected{AnyAudience: i.Audience, Time: now}, Leeway); {
	case errors.Is(err, josejwt.ErrInvalidAudience):
		return nil, wrongAudience
	case errors.Is(err, josejwt.ErrExpired):
		return nil, expired
	case err != nil:
		return nil, notYet
	case told.Expiry == nil:
		return nil, noExpiry
	}
	claims := new(rule.Claims)
	for _, a := range v.attributes {
		value, err := a.value.Text(payload)
		if err != nil || len(value) > MaxValue {
			return nil, badClaims
		}
		if !assign(claims, a.name, value) {
			return nil, badClaims
		}
	}
	return &verified{issuer: i, by: set, claims: claims, until: told.Expiry.Time().Add(Leeway)}, valid
}

// assign sets a value of the claims, and reports whether it can be one.
func assign(c *rule.Claims, name, value string) bool {
	switch {
	case value == "":
	case name == "user":
		c.User = strings.Clone(value)
	case name == "tier":
		c.Tier = strings.Clone(value)
	case name == "priority":
		return c.Priority.UnmarshalText([]byte(value)) == nil
	default:
		if c.Attributes == nil {
			c.Attributes = map[string]string{}
		}
		c.Attributes[name] = strings.Clone(value)
	}
	return true
}
