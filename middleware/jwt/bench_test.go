package jwt

import (
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// A token of 1 kB that is remembered, and one that is verified.
func BenchmarkVerify(b *testing.B) {
	p := newProvider(b, ecJWK(0, "one"), jose.JSONWebKey{Key: rsaKey().Public(), KeyID: "rsa"})
	v := loaded(b, p, Options{Attributes: map[string]string{"user": "jwt.claims.sub", "org": "jwt.claims.org"}})
	header := []string{"Bearer " + p.token(b, claims{"org": "acme", "pad": strings.Repeat("x", 570)})}
	if n := len(header[0]); n < 1000 || n > 1100 {
		b.Fatalf("it has %d bytes", n)
	}
	b.Run("remembered", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if c, err := v.Verify(header); err != nil || c.User != "ann" {
				b.Fatal(c, err)
			}
		}
	})
	for name, header := range map[string][]string{
		"es256": header, "rs256": {"Bearer " + sign(b, jose.RS256, rsaKey(), "rsa", p.claims(nil))},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				v.verified = newTable(0)
				if c, err := v.Verify(header); err != nil || c.User != "ann" {
					b.Fatal(c, err)
				}
			}
		})
	}
}
