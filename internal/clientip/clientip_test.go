package clientip

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

// The proxies of these tests are in 10.0.0.0/8 and 2001:db8:ffff::/48.
var proxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:ffff::/48")}

func resolver(t testing.TB, header Header, trusted ...netip.Prefix) *Resolver {
	t.Helper()
	r, err := New(trusted, header)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// headers makes a header of lines such as "X-Forwarded-For: 192.0.2.1".
func headers(lines ...string) http.Header {
	h := http.Header{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		h.Add(name, strings.TrimSpace(value))
	}
	return h
}

func TestClient(t *testing.T) {
	const peer = "10.0.0.1:5000"
	for _, c := range []struct {
		name   string
		remote string
		header []string
		want   string
	}{
		{"direct", "203.0.113.7:1234", nil, "203.0.113.7"},
		{"direct, IPv6", "[2001:db8::7]:1234", nil, "2001:db8::7"},
		{"direct, with a zone", "[fe80::7%eth0]:1234", nil, "fe80::7"},
		{"direct, mapped", "[::ffff:203.0.113.7]:1234", nil, "203.0.113.7"},
		{"direct, without a port", "203.0.113.7", nil, "203.0.113.7"},
		{"direct, IPv4 in brackets", "[203.0.113.7]:1234", nil, "203.0.113.7"},
		{"no address", "pipe", nil, "0.0.0.0"},
		{"no address of a proxy is believed", "pipe", []string{"X-Forwarded-For: 192.0.2.1"}, "0.0.0.0"},
		{"a name", "localhost:1234", nil, "0.0.0.0"},
		{"brackets only", "[]:1234", nil, "0.0.0.0"},
		{"half a bracket", "[203.0.113.7:1234", nil, "0.0.0.0"},
		{"a bad port", "203.0.113.7:123456", nil, "0.0.0.0"},
		{"a Unix socket is this machine", "@", nil, "127.0.0.1"},
		{"a Unix socket without a name", "", nil, "127.0.0.1"},
		{"a Unix socket with a path", "/run/x.sock", nil, "127.0.0.1"},

		// A peer that is not a trusted proxy is the client, whatever it sends.
		{"spoofed X-Forwarded-For", "203.0.113.7:1", []string{"X-Forwarded-For: 192.0.2.1"}, "203.0.113.7"},
		{"spoofed Forwarded", "203.0.113.7:1", []string{"Forwarded: for=192.0.2.1"}, "203.0.113.7"},
		{"spoofed as a proxy", "203.0.113.7:1", []string{"X-Forwarded-For: 192.0.2.1, 10.0.0.2"}, "203.0.113.7"},
		{"next to the network", "11.0.0.1:1", []string{"X-Forwarded-For: 192.0.2.1"}, "11.0.0.1"},

		// Nothing else is believed, not even from a proxy.
		{"X-Real-IP", peer, []string{"X-Real-Ip: 192.0.2.1"}, "10.0.0.1"},
		{"True-Client-IP", peer, []string{"True-Client-Ip: 192.0.2.1"}, "10.0.0.1"},
		{"CF-Connecting-IP", peer, []string{"Cf-Connecting-Ip: 192.0.2.1"}, "10.0.0.1"},
		{"X-Client-IP", peer, []string{"X-Client-Ip: 192.0.2.1"}, "10.0.0.1"},
		{"X-Forwarded", peer, []string{"X-Forwarded: for=192.0.2.1"}, "10.0.0.1"},
		{"Via", peer, []string{"Via: 1.1 192.0.2.1"}, "10.0.0.1"},

		// A proxy appends; what stands before its entry is the client's.
		{"one proxy", peer, []string{"X-Forwarded-For: 203.0.113.7"}, "203.0.113.7"},
		{"a client that forges one", peer, []string{"X-Forwarded-For: 192.0.2.1, 203.0.113.7"}, "203.0.113.7"},
		{"a client that forges many", peer, []string{"X-Forwarded-For: 192.0.2.1, 192.0.2.2,192.0.2.3 ,\t203.0.113.7"}, "203.0.113.7"},
		{"a client that forges a proxy", peer, []string{"X-Forwarded-For: 10.0.0.9, 203.0.113.7"}, "203.0.113.7"},
		{"a client that forges rubbish", peer, []string{"X-Forwarded-For: ,,;\"', <script>, 203.0.113.7"}, "203.0.113.7"},
		{"two proxies", peer, []string{"X-Forwarded-For: 192.0.2.1, 203.0.113.7, 10.2.3.4"}, "203.0.113.7"},
		{"two proxies, IPv4 and IPv6", peer, []string{"X-Forwarded-For: 203.0.113.7, 2001:db8:ffff::1"}, "203.0.113.7"},
		{"three lines", peer, []string{"X-Forwarded-For: 192.0.2.1", "X-Forwarded-For: 203.0.113.7", "X-Forwarded-For: 10.2.3.4"}, "203.0.113.7"},
		{"the client's line comes first", peer, []string{"X-Forwarded-For: 192.0.2.1, 192.0.2.2", "X-Forwarded-For: 203.0.113.7"}, "203.0.113.7"},
		{"a request of a proxy itself", peer, nil, "10.0.0.1"},
		{"proxies only", peer, []string{"X-Forwarded-For: 10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"an empty header", peer, []string{"X-Forwarded-For:"}, "10.0.0.1"},
		{"empty entries", peer, []string{"X-Forwarded-For: 192.0.2.1,, 203.0.113.7 , , "}, "203.0.113.7"},

		// Every way to write an address.
		{"with a port", peer, []string{"X-Forwarded-For: 203.0.113.7:4711"}, "203.0.113.7"},
		{"IPv6", peer, []string{"X-Forwarded-For: 2001:db8::7"}, "2001:db8::7"},
		{"IPv6 in brackets", peer, []string{"X-Forwarded-For: [2001:db8::7]"}, "2001:db8::7"},
		{"IPv6 with a port", peer, []string{"X-Forwarded-For: [2001:db8::7]:4711"}, "2001:db8::7"},
		{"IPv6 with a zone", peer, []string{"X-Forwarded-For: fe80::7%25eth0"}, "fe80::7"},
		{"mapped", peer, []string{"X-Forwarded-For: ::ffff:203.0.113.7"}, "203.0.113.7"},
		{"mapped, in hexadecimal", peer, []string{"X-Forwarded-For: ::ffff:cb00:7107"}, "203.0.113.7"},
		{"a mapped proxy is that proxy", peer, []string{"X-Forwarded-For: 203.0.113.7, ::ffff:10.0.0.2"}, "203.0.113.7"},
		{"a mapped peer is that peer", "[::ffff:10.0.0.1]:1", []string{"X-Forwarded-For: 203.0.113.7"}, "203.0.113.7"},

		// What names no address ends the walk at the proxy that wrote it.
		{"rubbish", peer, []string{"X-Forwarded-For: 192.0.2.1, rubbish"}, "10.0.0.1"},
		{"rubbish of the second proxy", peer, []string{"X-Forwarded-For: 192.0.2.1, rubbish, 10.0.0.2"}, "10.0.0.2"},
		{"unknown", peer, []string{"X-Forwarded-For: 192.0.2.1, unknown"}, "10.0.0.1"},
		{"leading zeros", peer, []string{"X-Forwarded-For: 192.0.2.1, 203.0.113.007"}, "10.0.0.1"},
		{"IPv4 in brackets", peer, []string{"X-Forwarded-For: 192.0.2.1, [203.0.113.7]"}, "10.0.0.1"},
		{"an open bracket", peer, []string{"X-Forwarded-For: 192.0.2.1, [2001:db8::7"}, "10.0.0.1"},
		{"no port", peer, []string{"X-Forwarded-For: 192.0.2.1, 203.0.113.7:"}, "10.0.0.1"},
		{"a name for a port", peer, []string{"X-Forwarded-For: 192.0.2.1, 203.0.113.7:http"}, "10.0.0.1"},
		{"a long port", peer, []string{"X-Forwarded-For: 192.0.2.1, 203.0.113.7:123456"}, "10.0.0.1"},
		{"no zone", peer, []string{"X-Forwarded-For: 192.0.2.1, fe80::7%"}, "10.0.0.1"},
		{"a zone of IPv4", peer, []string{"X-Forwarded-For: 192.0.2.1, 203.0.113.7%eth0"}, "10.0.0.1"},
		{"two in one", peer, []string{"X-Forwarded-For: 192.0.2.1, 203.0.113.7 203.0.113.8"}, "10.0.0.1"},
		{"in quotes", peer, []string{`X-Forwarded-For: 192.0.2.1, "203.0.113.7"`}, "10.0.0.1"},
		{"a network", peer, []string{"X-Forwarded-For: 192.0.2.1, 203.0.113.0/24"}, "10.0.0.1"},

		// Forwarded.
		{"for", peer, []string{"Forwarded: for=203.0.113.7"}, "203.0.113.7"},
		{"any case", peer, []string{"Forwarded: FOR=203.0.113.7"}, "203.0.113.7"},
		{"quoted", peer, []string{`Forwarded: for="203.0.113.7"`}, "203.0.113.7"},
		{"quoted, with a port", peer, []string{`Forwarded: for="203.0.113.7:4711"`}, "203.0.113.7"},
		{"not quoted, with a port", peer, []string{`Forwarded: for=203.0.113.7:4711`}, "203.0.113.7"},
		{"an obfuscated port", peer, []string{`Forwarded: for="203.0.113.7:_gazonk"`}, "203.0.113.7"},
		{"quoted IPv6", peer, []string{`Forwarded: for="[2001:db8::7]"`}, "2001:db8::7"},
		{"quoted IPv6, with a port", peer, []string{`Forwarded: for="[2001:db8::7]:4711"`}, "2001:db8::7"},
		{"other parameters", peer, []string{`Forwarded: proto=https;for=203.0.113.7; by="[2001:db8::2]";host="a,b;c"`}, "203.0.113.7"},
		{"a comma in quotes", peer, []string{`Forwarded: for=203.0.113.7;host="x, for=192.0.2.1"`}, "203.0.113.7"},
		{"an escaped quote", peer, []string{`Forwarded: for=203.0.113.7;host="x\", for=192.0.2.1"`}, "203.0.113.7"},
		{"a comma before an escaped quote", peer, []string{`Forwarded: for=203.0.113.7;host="x, for=192.0.2.1\"y"`}, "203.0.113.7"},
		{"an escaped backslash", peer, []string{`Forwarded: for=192.0.2.1;host="x\\", for=203.0.113.7`}, "203.0.113.7"},
		{"a list", peer, []string{"Forwarded: for=192.0.2.1, for=203.0.113.7, for=10.0.0.2"}, "203.0.113.7"},
		{"a list in lines", peer, []string{"Forwarded: for=192.0.2.1", "Forwarded: for=203.0.113.7", "Forwarded: for=10.0.0.2"}, "203.0.113.7"},
		{"a forged open quote", peer, []string{`Forwarded: for="192.0.2.1, for=203.0.113.7`}, "203.0.113.7"},
		{"a forged open quote before a quoted one", peer, []string{`Forwarded: host="x, for="[2001:db8::7]"`}, "2001:db8::7"},
		{"hidden", peer, []string{"Forwarded: for=192.0.2.1, for=_hidden"}, "10.0.0.1"},
		{"hidden, in quotes", peer, []string{`Forwarded: for=192.0.2.1, for="_SEVKISEK"`}, "10.0.0.1"},
		{"unknown to it", peer, []string{"Forwarded: for=192.0.2.1, for=unknown"}, "10.0.0.1"},
		{"hidden by the second proxy", peer, []string{"Forwarded: for=192.0.2.1, for=_hidden, for=10.0.0.2"}, "10.0.0.2"},
		{"no for", peer, []string{"Forwarded: for=192.0.2.1, proto=https"}, "10.0.0.1"},
		{"two fors", peer, []string{"Forwarded: for=203.0.113.7;for=192.0.2.1"}, "10.0.0.1"},
		{"no value", peer, []string{"Forwarded: for=192.0.2.1, for="}, "10.0.0.1"},
		{"an empty value", peer, []string{`Forwarded: for=192.0.2.1, for=""`}, "10.0.0.1"},
		{"no pair", peer, []string{"Forwarded: for=192.0.2.1, 203.0.113.7"}, "10.0.0.1"},
		{"text after the quotes", peer, []string{`Forwarded: for=192.0.2.1, for="203.0.113.7"x`}, "10.0.0.1"},
		{"spaces inside", peer, []string{`Forwarded: for=192.0.2.1, for=203.0.113.7 x`}, "10.0.0.1"},
		{"an escape in the address", peer, []string{`Forwarded: for=192.0.2.1, for="203.0.113.\7"`}, "10.0.0.1"},

		// Both.
		{"both agree", peer, []string{"X-Forwarded-For: 203.0.113.7", "Forwarded: for=203.0.113.7"}, "203.0.113.7"},
		{"both agree, however they are forged", peer, []string{"X-Forwarded-For: 192.0.2.1, 203.0.113.7", "Forwarded: for=192.0.2.2, for=203.0.113.7"}, "203.0.113.7"},
		{"a forged Forwarded", peer, []string{"X-Forwarded-For: 203.0.113.7", "Forwarded: for=192.0.2.1"}, "10.0.0.1"},
		{"a forged X-Forwarded-For", peer, []string{"X-Forwarded-For: 192.0.2.1", "Forwarded: for=203.0.113.7"}, "10.0.0.1"},
		{"a Forwarded that hides", peer, []string{"X-Forwarded-For: 203.0.113.7", "Forwarded: for=unknown"}, "10.0.0.1"},
		{"an empty Forwarded", peer, []string{"X-Forwarded-For: 203.0.113.7", "Forwarded: "}, "203.0.113.7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, _ := resolver(t, Either, proxies...).Client(c.remote, headers(c.header...)); got != netip.MustParseAddr(c.want) {
				t.Errorf("%q from %s: %v, want %s", c.header, c.remote, got, c.want)
			}
		})
	}
}

// If the configuration names one header, the other is ignored.
func TestOneHeader(t *testing.T) {
	h := headers("X-Forwarded-For: 203.0.113.7", "Forwarded: for=203.0.113.8")
	for header, want := range map[Header]string{Either: "10.0.0.1", XForwardedFor: "203.0.113.7", Forwarded: "203.0.113.8"} {
		if got, _ := resolver(t, header, proxies...).Client("10.0.0.1:1", h); got.String() != want {
			t.Errorf("header %d: %v, want %s", header, got, want)
		}
	}
	if got, _ := resolver(t, Forwarded, proxies...).Client("10.0.0.1:1", headers("X-Forwarded-For: 203.0.113.7")); got.String() != "10.0.0.1" {
		t.Errorf("X-Forwarded-For was believed where Forwarded is: %v", got)
	}
}

func TestDoubt(t *testing.T) {
	for _, c := range []struct {
		trusted []netip.Prefix
		remote  string
		header  []string
		want    Doubt
	}{
		{nil, "203.0.113.7:1", nil, Clear},
		{nil, "203.0.113.7:1", []string{"X-Forwarded-For: 192.0.2.1"}, Ignored},
		{nil, "203.0.113.7:1", []string{"Forwarded: for=192.0.2.1"}, Ignored},
		{proxies, "203.0.113.7:1", []string{"X-Forwarded-For: 192.0.2.1"}, Clear},
		{proxies, "10.0.0.1:1", []string{"X-Forwarded-For: 192.0.2.1"}, Clear},
		{proxies, "10.0.0.1:1", []string{"X-Forwarded-For: 192.0.2.1", "Forwarded: for=192.0.2.2"}, Contradiction},
		{nil, "pipe", nil, NoAddress},
	} {
		addr, got := resolver(t, Either, c.trusted...).Client(c.remote, headers(c.header...))
		if got != c.want || (addr == Unknown) != (c.want == NoAddress) {
			t.Errorf("%q from %s: doubt %d about %v, want %d", c.header, c.remote, got, addr, c.want)
		}
	}
}

// A header is read from its end, and not for ever.
func TestBounds(t *testing.T) {
	r := resolver(t, Either, proxies...)
	for _, c := range []struct{ name, header, want string }{
		{"many hops", "203.0.113.7" + strings.Repeat(",10.0.0.2", maxHops-1), "203.0.113.7"},
		{"too many hops", "203.0.113.7" + strings.Repeat(",10.0.0.2", maxHops), "10.0.0.2"},
		{"too many empty ones", "203.0.113.7" + strings.Repeat(",", maxHops), "10.0.0.1"},
		{"long before", strings.Repeat("x", 1<<20) + ", 203.0.113.7", "203.0.113.7"},
		{"one long entry", strings.Repeat("1", 1<<20), "10.0.0.1"},
		// Cut off after 8 KiB it would be 3.0.113.7, a wrong address.
		{"torn", "203.0.113.7," + strings.Repeat(" ", maxBytes-len("3.0.113.7,")), "10.0.0.1"},
	} {
		if got, _ := r.Client("10.0.0.1:1", http.Header{"X-Forwarded-For": {c.header}}); got.String() != c.want {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}
	lines := make([]string, 20)
	for i := range lines {
		lines[i] = strings.Repeat(" ", 1000)
	}
	lines[0] = "203.0.113.7"
	if got, _ := r.Client("10.0.0.1:1", http.Header{"X-Forwarded-For": lines}); got.String() != "10.0.0.1" {
		t.Errorf("many lines: %v", got)
	}
}

func TestNew(t *testing.T) {
	for _, c := range []struct {
		prefix netip.Prefix
		header Header
		want   string
	}{
		{netip.Prefix{}, Either, "is not a network"},
		{netip.MustParsePrefix("0.0.0.0/0"), Either, "trusts every address"},
		{netip.MustParsePrefix("::/0"), Either, "trusts every address"},
		{netip.PrefixFrom(netip.MustParseAddr("::ffff:0.0.0.0"), 96), Either, "trusts every address"},
		{netip.MustParsePrefix("10.0.0.0/8"), 9, "is unknown"},
	} {
		if _, err := New([]netip.Prefix{c.prefix}, c.header); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.prefix, err, c.want)
		}
	}
}

// Networks may overlap, come in any order, with host bits and mapped.
func TestNetworks(t *testing.T) {
	var all []netip.Prefix
	for _, s := range []string{"192.168.7.9/16", "10.1.0.0/16", "10.0.0.0/8", "10.1.2.0/24", "::ffff:172.16.0.0/108", "2001:db8::1/128", "fe80::/10", "10.0.0.0/8"} {
		all = append(all, netip.MustParsePrefix(s))
	}
	n, err := newNetworks(all)
	if err != nil {
		t.Fatal(err)
	}
	for s, want := range map[string]bool{
		"192.168.0.1": true, "192.169.0.0": false, "10.255.255.255": true, "9.255.255.255": false, "11.0.0.0": false,
		"172.16.0.1": true, "172.31.255.255": true, "172.32.0.0": false, "2001:db8::1": true, "2001:db8::2": false,
		"fe80::1": true, "fec0::": false, "::1": false, "0.0.0.0": false,
	} {
		if got := n.contain(netip.MustParseAddr(s)); got != want {
			t.Errorf("%s: %v, want %v", s, got, want)
		}
	}
}

// A request costs no memory, be it direct or through proxies.
func TestAllocations(t *testing.T) {
	for name, c := range map[string]struct {
		r      *Resolver
		remote string
		h      http.Header
	}{
		"direct":       {resolver(t, Either), "203.0.113.7:1234", headers("Accept: */*")},
		"direct, IPv6": {resolver(t, Either), "[2001:db8::7%eth0]:1234", headers("Accept: */*")},
		"proxies":      {resolver(t, Either, proxies...), "10.0.0.1:1", headers("X-Forwarded-For: 192.0.2.1, [2001:db8::7]:80, 10.0.0.2")},
		"Forwarded":    {resolver(t, Either, proxies...), "10.0.0.1:1", headers(`Forwarded: for="[2001:db8::7]:80";proto=https, for=10.0.0.2`)},
	} {
		if n := testing.AllocsPerRun(100, func() { c.r.Client(c.remote, c.h) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// Only this machine reaches a loopback address, with a port or without.
func TestIsLoopback(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:80": true, "[::1]:80": true, "localhost:80": true, "127.9.9.9:0": true, "::1": true, "localhost": true, "127.0.0.1": true,
		"0.0.0.0:80": false, ":80": false, "10.0.0.1:80": false, "example.com:80": false, "[::]:80": false, "": false, "example.com": false,
	} {
		if got := IsLoopback(address); got != want {
			t.Errorf("IsLoopback(%q) = %v", address, got)
		}
	}
}

func BenchmarkClient(b *testing.B) {
	direct, proxied := resolver(b, Either), resolver(b, Either, proxies...)
	h := headers("X-Forwarded-For: 192.0.2.1, 203.0.113.7, 10.0.0.2")
	none := headers("Accept: */*")
	b.Run("direct", func(b *testing.B) {
		for b.Loop() {
			direct.Client("203.0.113.7:1234", none)
		}
	})
	b.Run("two proxies", func(b *testing.B) {
		for b.Loop() {
			proxied.Client("10.0.0.1:1234", h)
		}
	})
}
