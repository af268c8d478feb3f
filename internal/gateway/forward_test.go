package gateway

import (
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/middleware/httplimit"
	"github.com/weirhq/weir/store/memory"
)

// lies are what a client may write to be taken for another.
var lies = []string{
	"X-Forwarded-For: 192.0.2.1", "X-Forwarded-Host: evil", "X-Forwarded-Proto: https", "X-Forwarded-Port: 1", "X-Forwarded-Server: evil",
	"X-Forwarded-Prefix: /evil", "X-Forwarded-Ssl: on", "X-Forwarded-By: evil", "X-Forwarded: for=192.0.2.1", "Forwarded: for=192.0.2.1;host=evil;proto=https",
	"X-Real-IP: 192.0.2.1", "Client-IP: 192.0.2.1", "X-Client-IP: 192.0.2.1", "True-Client-IP: 192.0.2.1", "X-Cluster-Client-IP: 192.0.2.1",
	"X-Original-Forwarded-For: 192.0.2.1", "CF-Connecting-IP: 192.0.2.1", "Fastly-Client-IP: 192.0.2.1", "X-Original-URL: /admin", "X-Rewrite-URL: /admin",
	"X-Azure-ClientIP: 192.0.2.1", "X-Azure-SocketIP: 192.0.2.1", "X-Appengine-User-IP: 192.0.2.1", "X-ProxyUser-IP: 192.0.2.1", "Front-End-Https: evil", "X-Url-Scheme: evil",
	"X-Host: evil", "X-Scheme: evil", "X-HTTP-Host-Override: evil", "Proxy-Client-IP: 192.0.2.1", "WL-Proxy-Client-IP: 192.0.2.1", "HTTP_CLIENT_IP: 192.0.2.1", "HTTP_X_FORWARDED_FOR: 192.0.2.1",
	"X-Remote-IP: 192.0.2.1", "X-Remote-Addr: 192.0.2.1", "X-Originating-IP: 192.0.2.1", "Fly-Client-IP: 192.0.2.1", "X-Forwarded.For: 192.0.2.1", "Front_End_Https: evil",
	"X_Forwarded_For: 192.0.2.1", "x_forwarded_host: evil", "X-Forwarded_For: 192.0.2.1", "X_Real_IP: 192.0.2.1", "X_Original_URL: /admin",
}

func TestLiesAreRemoved(t *testing.T) {
	url, last := seen(t)
	b := newStand(t, setup{}, url)
	check := func(what string) {
		t.Helper()
		r := last()
		for name, values := range r.Header {
			for _, v := range values {
				if strings.Contains(v, "192.0.2.1") || strings.Contains(v, "evil") || strings.Contains(v, "/admin") || name == "X-Forwarded-Port" || name == "X-Forwarded-Ssl" {
					t.Errorf("%s: the upstream saw %s: %s", what, name, v)
				}
			}
		}
		for name, want := range map[string]string{"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Host": "example.com", "X-Forwarded-Proto": "http"} {
			if v := r.Header[name]; !slices.Equal(v, []string{want}) {
				t.Errorf("%s: the upstream saw %s: %q, want %q", what, name, v, want)
			}
		}
	}
	for _, lie := range lies {
		b.raw("GET / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n" + lie + "\r\n" + lie + "\r\n\r\n")
		check(lie)
		name, _, _ := strings.Cut(lie, ":")
		b.raw("GET / HTTP/1.1\r\nHost: example.com\r\nConnection: close, " + name + ", X-Forwarded-For\r\n" + lie + "\r\n\r\n")
		check("hop by hop " + lie)
	}
	b.raw("GET / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n" + strings.Join(lies, "\r\n") + "\r\n\r\n")
	check("all at once")
}

// What the limiter believes of proxies reaches an upstream from proxies only, and what it
// counts by reaches it in one spelling.
func TestBelievedHeaders(t *testing.T) {
	url, last := seen(t)
	claims := []string{
		"X-User: mallory", "X_User: mallory", "x_USER: mallory", "X-Tier: mallory", "x_tier: mallory", "X-Priority: high", "X_Priority: critical",
		"X_API_Key: mallory", "X-Api_Key: mallory", "X_Tenant: mallory", "X-Tenant: acme", "X-Other: 1", "X_Other: 2", "X-Api-Key: key",
	}
	for _, c := range []struct {
		who, proxies string
		want         map[string]string
	}{
		{"a client", "10.0.0.0/8", map[string]string{"X-Tenant": "acme", "X-Other": "1", "X_other": "2", "X-Api-Key": "key"}},
		{"a proxy", "127.0.0.0/8", map[string]string{"X-Tenant": "acme", "X-Other": "1", "X_other": "2", "X-Api-Key": "key", "X-User": "mallory", "X-Tier": "mallory", "X-Priority": "high"}},
	} {
		b := newStand(t, setup{
			rules:   "rules: [{id: all, key: [ip, 'header:x-tenant'], limit: 1000/1s}]",
			limit:   httplimit.Options{UserHeader: "x-user", TierHeader: "X-Tier", PriorityHeader: "x-priority"},
			options: Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix(c.proxies)}},
		}, url)
		b.raw("GET / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n" + strings.Join(claims, "\r\n") + "\r\n\r\n")
		got := map[string]string{}
		for name, values := range last().Header {
			if !strings.HasPrefix(name, "X-Forwarded") && name != "Via" && name != "User-Agent" && name != "Accept-Encoding" {
				got[name] = strings.Join(values, " & ")
			}
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("from %s the upstream saw %v\nwant %v", c.who, got, c.want)
		}
	}
}

func TestForward(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::ffff:172.16.0.0/108"), netip.MustParsePrefix("2001:db8::/32")}
	const proxy = "10.0.0.1:5000"
	for _, c := range []struct {
		name   string
		remote string
		header httplimit.ProxyHeader
		in     []string
		want   string // For | Host | Proto | Forwarded | X-Real-Ip
	}{
		{"a client", "203.0.113.7:1", 0, nil, "203.0.113.7|host|http||"},
		{"IPv6", "[2001:db9::7%eth0]:1", 0, nil, "2001:db9::7|host|http||"},
		{"mapped", "[::ffff:203.0.113.7]:1", 0, nil, "203.0.113.7|host|http||"},
		{"a Unix socket", "@", 0, nil, "127.0.0.1|host|http||"},
		{"no address", "pipe", 0, []string{"X-Forwarded-For: 192.0.2.1"}, "|host|http||"},
		{"a liar", "203.0.113.7:1", 0, []string{"X-Forwarded-For: 10.0.0.1", "X-Real-Ip: 10.0.0.1", "Forwarded: for=10.0.0.1"}, "203.0.113.7|host|http||"},

		{"a proxy", proxy, 0, []string{"X-Forwarded-For: 203.0.113.7"}, "203.0.113.7, 10.0.0.1|host|http||"},
		{"a mapped proxy", "[::ffff:10.0.0.1]:1", 0, []string{"X-Forwarded-For: 203.0.113.7"}, "203.0.113.7, 10.0.0.1|host|http||"},
		{"a proxy of a mapped network", "172.31.0.1:1", 0, []string{"X-Forwarded-For: 203.0.113.7"}, "203.0.113.7, 172.31.0.1|host|http||"},
		{"a proxy with IPv6", "[2001:db8::1]:1", 0, []string{"X-Forwarded-For: 203.0.113.7"}, "203.0.113.7, 2001:db8::1|host|http||"},
		{"two lines", proxy, 0, []string{"X-Forwarded-For: 192.0.2.1", "X-Forwarded-For: 203.0.113.7"}, "192.0.2.1, 203.0.113.7, 10.0.0.1|host|http||"},
		{"a proxy that says more", proxy, 0, []string{"X-Forwarded-For: 203.0.113.7", "X-Forwarded-Host: shop", "X-Forwarded-Proto: https", "X-Real-Ip: 203.0.113.7"}, "203.0.113.7, 10.0.0.1|shop|https||203.0.113.7"},
		{"a proxy that says nothing", proxy, 0, nil, "10.0.0.1|host|http||"},
		{"Forwarded", proxy, 0, []string{"Forwarded: for=203.0.113.7;proto=https"}, "10.0.0.1|host|http|for=203.0.113.7;proto=https|"},
		{"both agree", proxy, 0, []string{"Forwarded: for=203.0.113.7", "X-Forwarded-For: 203.0.113.7"}, "203.0.113.7, 10.0.0.1|host|http|for=203.0.113.7|"},
		{"both disagree", proxy, 0, []string{"Forwarded: for=203.0.113.7", "X-Forwarded-For: 192.0.2.1", "X-Real-Ip: 192.0.2.1"}, "10.0.0.1|host|http||"},
		{"X-Forwarded-For only", proxy, httplimit.XForwardedFor, []string{"Forwarded: for=192.0.2.1", "X-Forwarded-For: 203.0.113.7"}, "203.0.113.7, 10.0.0.1|host|http||"},
		{"Forwarded only", proxy, httplimit.Forwarded, []string{"Forwarded: for=203.0.113.7", "X-Forwarded-For: 192.0.2.1"}, "10.0.0.1|host|http|for=203.0.113.7|"},
		{"underscores through a proxy", proxy, 0, []string{"X_forwarded_for: 192.0.2.1", "X_real_ip: 192.0.2.1"}, "10.0.0.1|host|http||"},
	} {
		o := Options{TrustedProxies: proxies, ProxyHeader: c.header, Limit: limitOf(t, memory.New(memory.Options{}), generous, httplimit.Options{})}
		p, err := o.newPeers()
		if err != nil {
			t.Fatal(err)
		}
		in := &http.Request{RemoteAddr: c.remote, Host: "host", Header: http.Header{}}
		for _, line := range c.in {
			name, value, _ := strings.Cut(line, ": ")
			in.Header.Add(name, value)
		}
		out := http.Header{}
		var room [3]string
		p.write(in, out, &room)
		var got []string
		for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded", "X-Real-Ip"} {
			got = append(got, strings.Join(out[name], " & "))
		}
		if s := strings.Join(got, "|"); s != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, s, c.want)
		}
		for name := range out {
			if strings.Contains(name, "_") {
				t.Errorf("%s: %s went on", c.name, name)
			}
		}
	}
}

// To write who the client is takes one allocation, the text of its address.
func TestForwardAllocations(t *testing.T) {
	o := Options{Limit: limitOf(t, memory.New(memory.Options{}), generous, httplimit.Options{})}
	p, err := o.newPeers()
	if err != nil {
		t.Fatal(err)
	}
	in := &http.Request{RemoteAddr: "203.0.113.7:1", Host: "host", Header: http.Header{"Accept": {"*/*"}, "Content-Type": {"x"}, "X-Request-Id": {"1"}}}
	out := in.Header.Clone()
	var room [3]string
	p.write(in, out, &room)
	if n := testing.AllocsPerRun(100, func() { p.write(in, out, &room) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

// A session of the dashboard does not reach upstreams, whatever stands beside it.
func TestSessionsStayHere(t *testing.T) {
	url, last := seen(t)
	b := newStand(t, setup{}, url)
	for sent, want := range map[string]string{
		"a=1; weir_session=bob|9|x; b=2":             "a=1; b=2",
		"__Host-weir_session=bob|9|x":                "",
		" weir_session =x;a=1":                       "a=1",
		"a=weir_session; my_weir_session=2; c":       "a=weir_session; my_weir_session=2; c",
		"a=1\r\nCookie: weir_session=x\r\nCookie: b": "a=1; b",
		"a=1;b=2": "a=1;b=2",
	} {
		b.raw("GET / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\nCookie: " + sent + "\r\n\r\n")
		if got := strings.Join(last().Header["Cookie"], " & "); got != want {
			t.Errorf("%q arrived as %q, want %q", sent, got, want)
		}
	}
}
