// Package jwt tells who a client is by the JSON Web Token that it sends as a bearer token:
//
//	tokens, err := jwt.New(jwt.Options{
//		Issuers:    []jwt.Issuer{{URL: "https://id.example.com", Audience: []string{"api"}}},
//		Attributes: map[string]string{"user": "jwt.claims.sub", "org": "jwt.claims.org"},
//	})
//	go tokens.Run(ctx)
//	limit, err := httplimit.New(engine, httplimit.Options{Token: tokens.Verify})
//
// It verifies tokens with the keys that their issuer publishes, which Run fetches in the
// background. It does not decide what a client may do: that is for the service behind.
package jwt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/rule/expression"
)

// Leeway is by how much the clocks of an issuer and of this machine may differ: so much longer is
// a token valid, and so much earlier.
const Leeway = time.Minute

// Bounds on what clients and issuers send.
const (
	MaxToken = 16 << 10 // bytes of a token
	MaxValue = 256      // bytes of a value that is taken from a token
	MaxKeys  = 100      // keys of an issuer

	maxIssuers    = 100
	maxAttributes = 32
)

// Options of a verifier.
type Options struct {
	// Issuers are whose tokens are valid. Required.
	Issuers []Issuer

	// Required denies requests without a valid token. Default false: they have no identity, so
	// rules by user do not apply to them, and others do.
	Required bool

	// Attributes are what is taken from a token, by expressions over jwt.claims: "user", "tier",
	// and "priority" are those of the request, and any other name is that of an attribute. A
	// claim that is missing, null or empty gives no value. Default the user is jwt.claims.sub.
	Attributes map[string]string

	// Remember is how many verified tokens are remembered, at most. Default 20000, which
	// takes about 10 MB.
	Remember int

	// Logger is told when the keys of an issuer cannot be fetched. Default slog.Default().
	Logger *slog.Logger
}

// Issuer is who makes tokens.
type Issuer struct {
	// URL is the issuer as tokens have it in the claim iss. Required.
	URL string

	// Audience are the values of the claim aud, one of which a token must have. Required.
	Audience []string

	// JWKS is where the keys are: an https URL, or a file, which is followed. Plain http is for
	// this machine only. Default where the issuer's /.well-known/openid-configuration says.
	JWKS string

	// Algorithms are those by which the issuer signs. Default RS256, PS256, ES256 and EdDSA.
	// Algorithms with a shared secret are not supported.
	Algorithms []string
}

// usualAlgorithms are those that nearly all issuers use.
var usualAlgorithms = []string{"RS256", "PS256", "ES256", "EdDSA"}

// supported are the algorithms whose keys are no secret.
var supported = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// Verifier verifies tokens. It is safe for concurrent use.
type Verifier struct {
	issuers    map[string]*issuer
	algorithms []jose.SignatureAlgorithm // of any issuer
	required   bool
	attributes []attribute
	verified   *table
	results    [results]counter
	now        func() time.Time
}

// attribute is a value that is taken from a token.
type attribute struct {
	name  string
	value *expression.Claims
}

// New returns a verifier. Until Run or Load has fetched the keys, no token is valid, except those of an
// issuer whose keys are in a file.
func New(o Options) (*Verifier, error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Remember < 0 {
		return nil, fmt.Errorf("jwt: Remember is %d; it must be above 0, or 0 for the default", o.Remember)
	}
	if len(o.Issuers) == 0 || len(o.Issuers) > maxIssuers {
		return nil, fmt.Errorf("jwt: there are %d issuers; name 1 to %d", len(o.Issuers), maxIssuers)
	}
	v := &Verifier{issuers: map[string]*issuer{}, required: o.Required, verified: newTable(o.Remember), now: time.Now}
	for _, told := range o.Issuers {
		i, err := newIssuer(told, v, o.Logger)
		if err != nil {
			return nil, fmt.Errorf("jwt: the issuer %q: %w", told.URL, err)
		}
		if v.issuers[i.URL] != nil {
			return nil, fmt.Errorf("jwt: the issuer %q is there twice; write one with both audiences", i.URL)
		}
		v.issuers[i.URL] = i
		v.algorithms = append(v.algorithms, i.algorithms...)
	}
	slices.Sort(v.algorithms)
	v.algorithms = slices.Compact(v.algorithms)
	return v, v.compile(o.Attributes)
}

// compile prepares the expressions.
func (v *Verifier) compile(all map[string]string) error {
	if all == nil {
		all = map[string]string{"user": "jwt.claims.sub"}
	}
	if len(all) > maxAttributes {
		return fmt.Errorf("jwt: there are %d attributes; the maximum is %d", len(all), maxAttributes)
	}
	for name, source := range all {
		if _, err := rule.ParseSource("attr:" + name); err != nil {
			return fmt.Errorf("jwt: the attribute %q: %w", name, err)
		}
		value, err := expression.CompileClaims(source)
		if err != nil {
			return fmt.Errorf("jwt: the attribute %q: %w", name, err)
		}
		v.attributes = append(v.attributes, attribute{name, value})
	}
	slices.SortFunc(v.attributes, func(a, b attribute) int { return strings.Compare(a.name, b.name) })
	return nil
}

// Load fetches the keys of all issuers, so that the first requests find them. The error tells which could
// not be fetched.
func (v *Verifier) Load(ctx context.Context) error {
	wrong, n := make([]error, len(v.issuers)), 0
	var wg sync.WaitGroup
	for _, i := range v.issuers {
		at := &wrong[n]
		n++
		wg.Go(func() {
			if i.file == "" {
				*at = i.refresh(ctx)
			}
		})
	}
	wg.Wait()
	return errors.Join(wrong...)
}

// Trouble is what is wrong with keys of issuers, in a sentence that anybody may read; nil if they are current.
func (v *Verifier) Trouble() error {
	var old error
	for _, i := range v.issuers {
		switch known, ok := i.health(v.now()); {
		case !known:
			return errors.New("access tokens: the keys of an issuer could not be read, so its tokens are not valid; the log has the cause")
		case !ok:
			old = errors.New("access tokens: the keys of an issuer may be outdated, because they could not be read again; the log has the cause")
		}
	}
	return old
}

// Run fetches keys and follows files until the context ends, which is its error.
func (v *Verifier) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, i := range v.issuers {
		wg.Go(func() { i.follow(ctx) })
	}
	wg.Wait()
	return ctx.Err()
}
