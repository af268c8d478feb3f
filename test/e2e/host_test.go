package e2e

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/rule"
)

// ordinary is a host that somebody could have written without malice.
var ordinary = regexp.MustCompile(`^([-\w.%]+|\[[0-9a-fA-F:]+\])(:\d*)?$`)

// nginxHosts serves two names and says which, and everything else as somebody's.
const nginxHosts = `error_log stderr crit;
pid nginx.pid;
events {}
http {
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    server { listen ADDRESS default_server; return 200 nobody; }
    server { listen ADDRESS; server_name a.example.com; return 200 one; }
    server { listen ADDRESS; server_name *.b.example.com; return 200 below; }
    server { listen ADDRESS; server_name cafe; return 200 cafe; }
    server { listen ADDRESS; server_name [2001:db8::1]; return 200 literal; }
}
`

// However a client writes the host, the rule of a host applies if nginx serves that
// host. A rule applies to a host that nginx does not serve only if the host has more
// than a name and a port.
func TestHostsAsNginxReadsThem(t *testing.T) {
	dir, address := t.TempDir(), freeAddress(t)
	write(t, dir, "nginx.conf", strings.ReplaceAll(nginxHosts, "ADDRESS", address))
	run(t, dir, program(t, "nginx"), []string{"-p", dir, "-e", "stderr", "-c", "nginx.conf", "-g", "daemon off; master_process off;"}, []string{address})
	set, problems := rule.Parse("", []byte(`
rules:
  - {id: one, match: {host: a.example.com}, key: global, limit: 1/1s}
  - {id: below, match: {host: "*.b.example.com"}, key: global, limit: 1/1s}
  - {id: cafe, match: {host: cafe}, key: global, limit: 1/1s}
  - {id: literal, match: {host: "2001:db8::1"}, key: global, limit: 1/1s}
`))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	hosts := []string{
		"a.example.com", "A.Example.COM", "a.example.com.", "a.example.com:80", "a.example.com:", "a.example.com.:80", "a.example.com::",
		"a.example.com:80:80", "a.example.com:1:1", "a.example.com:[::1]", "a.example.com:80.", "a.example.com%2e", ".a.example.com", "a%2eexample.com",
		"x.b.example.com:80:80", "x.y.b.example.com.", "b.example.com", "cafe::1", "cafe::", "cafe:1:2", "[2001:db8::1]", "[2001:DB8::1]:80", "[2001:db8::1]:80:80", "[2001:db8::1]x",
	}
	pieces := []string{"a.example.com", "A.EXAMPLE.com", "x.b.example.com", "cafe", "[2001:db8::1]", ":", "::", ":80", ".", "[", "]", "%", "x", "1", "%3A", "*", "_", "-"}
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		var b strings.Builder
		for range 1 + r.IntN(5) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		hosts = append(hosts, b.String())
	}
	c, err := net.DialTimeout("tcp", address, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { c.Close() }()
	answers := bufio.NewReader(c)
	compared := 0
	for _, host := range hosts {
		fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", host)
		res, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatalf("%q: %v", host, err)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatalf("%q: %v", host, err)
		}
		if res.Close {
			c.Close()
			if c, err = net.DialTimeout("tcp", address, 10*time.Second); err != nil {
				t.Fatal(err)
			}
			answers = bufio.NewReader(c)
		}
		if res.StatusCode != http.StatusOK {
			continue // nginx serves no host with such a name
		}
		compared++
		matched := "nobody"
		for _, hit := range table.Match(nil, &rule.Request{Host: host}) {
			matched = hit.ID
		}
		if matched != string(body) && (string(body) != "nobody" || ordinary.MatchString(host)) {
			t.Errorf("Host %q: nginx serves %s, and the rules are those of %s", host, body, matched)
		}
	}
	if compared < 1000 {
		t.Errorf("nginx served %d of %d", compared, len(hosts))
	}
}
