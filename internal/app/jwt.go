package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/middleware/jwt"
)

// ParseIssuers reads issuers of tokens that are separated by semicolons, as in
// issuer=https://id.example.com,audience=api. Blanks separate the values of a list.
func ParseIssuers(text string) ([]jwt.Issuer, error) {
	all, err := notation.ParseSettings(text)
	if err != nil {
		return nil, err
	}
	var issuers []jwt.Issuer
	for _, s := range all {
		if s.Name != "issuer" {
			return nil, fmt.Errorf("%s comes first; write the issuer there, as in issuer=https://id.example.com,audience=api", document.Quote(s.Name))
		}
		i := jwt.Issuer{URL: s.Value}
		for _, o := range s.Options {
			switch o.Name {
			case "audience":
				i.Audience = strings.Fields(o.Value)
			case "jwks":
				i.JWKS = o.Value
			case "algorithms":
				i.Algorithms = strings.Fields(o.Value)
			default:
				return nil, fmt.Errorf("%s is unknown; %s", document.Quote(o.Name), notation.Hint(o.Name, []string{"audience", "jwks", "algorithms"}, "use audience, jwks or algorithms"))
			}
		}
		issuers = append(issuers, i)
	}
	return issuers, nil
}

// ParseAttributes reads what is taken from tokens, as in org=jwt.claims.org.
func ParseAttributes(texts []string) (map[string]string, error) {
	var all map[string]string
	for _, text := range texts {
		name, source, ok := strings.Cut(text, "=")
		if name, source = strings.TrimSpace(name), strings.TrimSpace(source); !ok || name == "" || source == "" {
			return nil, fmt.Errorf("%s is invalid; write a name and an expression, as in org=jwt.claims.org", document.Quote(text))
		}
		if _, twice := all[name]; twice {
			return nil, fmt.Errorf("%s is given twice; write it once", document.Quote(name))
		}
		if all == nil {
			all = map[string]string{}
		}
		all[name] = source
	}
	return all, nil
}

func (o *Options) checkJWT() error {
	if len(o.JWT.Issuers) == 0 && (o.JWT.Required || o.JWT.Attributes != nil) {
		return errors.New("--jwt-required and --attributes require --jwt; name the issuer of the tokens")
	}
	return nil
}

// loadPatience is how long a start waits for issuers.
const loadPatience = 5 * time.Second

// openJWT fetches the keys of the issuers. weir starts without those that cannot be fetched.
func (a *App) openJWT(ctx, background context.Context) error {
	o := a.options.JWT
	if len(o.Issuers) == 0 {
		return nil
	}
	o.Logger = a.options.Logger
	v, err := jwt.New(o)
	if err != nil {
		return fmt.Errorf("--jwt: %s", strings.TrimPrefix(err.Error(), "jwt: "))
	}
	a.jwt = v
	loading, cancel := context.WithTimeout(ctx, loadPatience)
	defer cancel()
	_ = v.Load(loading) // it has logged what is wrong
	a.background.Go(func() { _ = v.Run(background) })
	return nil
}

// jwtTrouble is what anybody may know of keys that are not current.
func (a *App) jwtTrouble() error {
	if a.jwt == nil {
		return nil
	}
	return a.jwt.Trouble()
}
