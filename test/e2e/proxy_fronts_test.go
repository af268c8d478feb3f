package e2e

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// front is a proxy with its files of examples/proxies, and what can be had from it.
type front struct {
	name string

	// start runs it with the addresses of the three, and closed if it is to let
	// nothing pass without weir.
	start func(t *testing.T, f *fleet, closed bool)

	tells      bool // an allowed client is told how it stands
	ownBody    bool // a denied client is told by the proxy, not in weir's words
	closedOnly bool // it lets nothing pass without weir
	closedWith int  // what it answers if so
	patient    bool // it waits for weir longer than a client would
}

func fronts() []front {
	all := []front{
		{name: "nginx", start: startNginx, tells: true, ownBody: true, closedWith: 503},
		{name: "caddy", start: startCaddy, tells: true, closedWith: 502},
		{name: "haproxy", start: startHAProxy, tells: true, closedWith: 503},
	}
	if os.Getenv("TRAEFIK") != "" {
		all = append(all, front{name: "traefik", start: startTraefik, closedOnly: true, closedWith: 500, patient: true})
	}
	return all
}

// nginxMain stands for the nginx.conf of a distribution, with everything in one directory.
const nginxMain = `error_log stderr;
pid nginx.pid;
events {}
http {
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    include weir.conf;
}
`

// A weir on a busy machine does not answer within the time that the examples give it, and would
// be taken for one that is gone. So each of them waits longer here.
func startNginx(t *testing.T, f *fleet, closed bool) {
	dir := t.TempDir()
	replaced := append(f.replaced(), "proxy_connect_timeout 200ms", "proxy_connect_timeout 5s", "proxy_read_timeout 1s", "proxy_read_timeout 5s")
	if closed {
		replaced = append(replaced, "        error_page 502 504 = @open;\n", "")
	}
	replaced = append(replaced, `Weir-Token ""`, `Weir-Token "`+f.token+`"`)
	adopt(t, dir, "nginx/weir.conf", replaced...)
	write(t, dir, "nginx.conf", nginxMain)
	// One process, so that none is left when it is killed.
	run(t, dir, program(t, "nginx"), []string{"-p", dir, "-e", "stderr", "-c", "nginx.conf", "-g", "daemon off; master_process off;"}, []string{f.public})
}

func startCaddy(t *testing.T, f *fleet, closed bool) {
	dir := t.TempDir()
	src, err := os.ReadFile("../../examples/proxies/caddy/Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(f.public)
	if err != nil {
		t.Fatal(err)
	}
	var replaced []string
	if closed {
		replaced = append(replaced, string(regexp.MustCompile(`(?s)\thandle_errors \{.*\n\t\}\n`).Find(src)), "")
	}
	replaced = append(replaced, "127.0.0.1:8080", f.weir, "127.0.0.1:9000", f.application.address(), "http://:8000", "http://:"+port,
		"{\n\tservers {", "{\n\tadmin off\n\tservers {", "dial_timeout 200ms", "dial_timeout 5s", "response_header_timeout 1s", "response_header_timeout 5s")
	file := adopt(t, dir, "caddy/Caddyfile", replaced...)
	run(t, dir, program(t, "caddy"), []string{"run", "--config", file, "--adapter", "caddyfile"}, []string{f.public})
}

func startHAProxy(t *testing.T, f *fleet, closed bool) {
	dir := t.TempDir()
	socket := []string{"/run/haproxy/weir.sock", filepath.Join(dir, "weir.sock")}
	lua := append(slices.Clone(socket), "timeout = 2000", "timeout = 20000")
	if closed {
		lua = append(lua, "open_without_weir = true", "open_without_weir = false")
	}
	script := adopt(t, dir, "haproxy/weir.lua", lua...)
	file := adopt(t, dir, "haproxy/haproxy.cfg", append(f.replaced(), append(socket, "/etc/haproxy/weir.lua", script,
		"timeout connect 200ms", "timeout connect 5s", "timeout server 1s", "timeout server 5s", "inter 1s fall 2", "inter 1s fall 30")...)...)
	run(t, dir, program(t, "haproxy"), []string{"-db", "-f", file}, []string{f.public})
}

// startTraefik runs the program that TRAEFIK names: Debian has no package of it.
func startTraefik(t *testing.T, f *fleet, _ bool) {
	dir := t.TempDir()
	dynamic := adopt(t, dir, "traefik/weir.yaml", "127.0.0.1:8080", f.weir, "127.0.0.1:9000", f.application.address())
	file := adopt(t, dir, "traefik/traefik.yaml", "127.0.0.1:8000", f.public, "/etc/traefik/weir.yaml", dynamic)
	run(t, dir, os.Getenv("TRAEFIK"), []string{"--configFile=" + file}, []string{f.public})
}
