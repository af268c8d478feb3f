package clientip

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

// Whatever a client sends, the address that the nearest proxy has seen is found: by
// proxies that continue the client's line and by those that add their own.
func FuzzSpoof(f *testing.F) {
	for _, s := range []string{
		"", ",", "10.0.0.9", "192.0.2.1, 10.0.0.9", `for="`, `for="\`, `for=192.0.2.1;host="`, `"\"\\`, "for=10.0.0.9, ",
		strings.Repeat(",", 100), strings.Repeat("10.0.0.9,", 100), strings.Repeat("\"", 10000), "[", "fe80::1%",
	} {
		f.Add(s, s)
	}
	r := resolver(f, Either, proxies...)
	f.Fuzz(func(t *testing.T, first, second string) {
		for entry, want := range map[string]string{"203.0.113.7": "203.0.113.7", "[2001:db8::7]:80": "2001:db8::7"} {
			quoted := `for="` + entry + `";proto=https`
			for _, h := range []http.Header{
				{"X-Forwarded-For": {first, second, entry}},
				{"X-Forwarded-For": {first, second + ", " + entry}},
				{"X-Forwarded-For": {first, second + "," + entry + ",10.0.0.2"}},
				{"X-Forwarded-For": {first, second, entry, "10.0.0.2"}},
				{"Forwarded": {first, second, quoted}},
				{"Forwarded": {first, second + ", " + quoted}},
				{"Forwarded": {first, second + "," + quoted + ",for=10.0.0.2"}},
				{"Forwarded": {first, second + "," + quoted}, "X-Forwarded-For": {second, first + "," + entry}},
			} {
				if got, doubt := r.Client("10.0.0.1:1", h); got != netip.MustParseAddr(want) || doubt != Clear {
					t.Errorf("%q: %v (doubt %d), want %s", h, got, doubt, want)
				}
			}
		}
		// A header that the proxies do not write can at most make a client the
		// proxy, never somebody else.
		for _, h := range []http.Header{
			{"X-Forwarded-For": {"203.0.113.7"}, "Forwarded": {first, second}},
			{"X-Forwarded-For": {first, second}, "Forwarded": {"for=203.0.113.7"}},
		} {
			if got, _ := r.Client("10.0.0.1:1", h); got.String() != "203.0.113.7" && got.String() != "10.0.0.1" {
				t.Errorf("%q: %v", h, got)
			}
		}
		if got, _ := r.Client("203.0.113.7:1", http.Header{"X-Forwarded-For": {first}, "Forwarded": {second}}); got.String() != "203.0.113.7" {
			t.Errorf("a client was believed: %v", got)
		}
		r.Client(first, nil)
	})
}
