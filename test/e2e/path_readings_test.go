package e2e

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/rule"
)

// read is what a server may take a path for, and the pattern of a rule for that.
var read = map[string]string{"exact": "/api/login", "below": "/api/login/**", "regexp": "/api/login", "stripped": "/api/login", "file": "/api/login"}

const caddyReadings = `{
	admin off
	auto_https off
}
http://:PORT1 {
	bind 127.0.0.1
	@exact path /api/login
	@below path /api/login/*
	@regexp path_regexp ^/api/login$
	header @exact +Read exact
	header @below +Read below
	header @regexp +Read regexp
	handle_path /api/* {
		@stripped path /login
		header @stripped +Read stripped
		respond ok
	}
	respond ok
}
http://:PORT2 {
	bind 127.0.0.1
	root * DIR
	file_server
}
`

const nginxReadings = `error_log stderr crit;
pid nginx.pid;
events {}
http {
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    keepalive_requests 100000;
    server {
        listen 127.0.0.1:PORT1;
        location = /api/login { add_header Read exact; return 200; }
        location ^~ /api/login/ { add_header Read below; return 200; }
        location / { return 200; }
    }
    server {
        listen 127.0.0.1:PORT2;
        root DIR;
    }
}
`

// If a real server takes a path for one that a rule is for, the rule applies, however the path is
// written.
func TestPathReadings(t *testing.T) {
	for name, run := range map[string]func(t *testing.T, dir string, replace *strings.Replacer, addresses []string){
		"caddy": func(t *testing.T, dir string, replace *strings.Replacer, addresses []string) {
			file := write(t, dir, "Caddyfile", replace.Replace(caddyReadings))
			run(t, dir, program(t, "caddy"), []string{"run", "--config", file, "--adapter", "caddyfile"}, addresses)
		},
		"nginx": func(t *testing.T, dir string, replace *strings.Replacer, addresses []string) {
			write(t, dir, "nginx.conf", replace.Replace(nginxReadings))
			run(t, dir, program(t, "nginx"), []string{"-p", dir, "-e", "stderr", "-c", "nginx.conf", "-g", "daemon off; master_process off;"}, addresses)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.MkdirAll(filepath.Join(dir, "root", "api"), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "root", "api"), "login", "file")
			addresses := []string{freeAddress(t), freeAddress(t)}
			port := func(i int) string { return addresses[i][strings.LastIndexByte(addresses[i], ':')+1:] }
			run(t, dir, strings.NewReplacer("PORT1", port(0), "PORT2", port(1), "DIR", filepath.Join(dir, "root")), addresses)
			// Caddy ignores case where it matches paths, and the file system does not.
			tables := map[bool]*rule.Table{}
			for _, ignoreCase := range []bool{false, true} {
				tables[ignoreCase] = compilePaths(t, rule.Options{IgnoreCase: ignoreCase})
			}
			hits := comparePaths(t, addresses, func(path, read string) bool {
				return matches(tables[name == "caddy" && read != "file" && read != "regexp"], path, read)
			})
			for read := range hits {
				t.Logf("%s: %d", read, hits[read])
			}
			if hits["exact"] < 50 || hits["below"] < 500 || hits["file"] < 50 {
				t.Errorf("too few paths were odd and reached anything: %v", hits)
			}
		})
	}
}

func compilePaths(t *testing.T, o rule.Options) *rule.Table {
	t.Helper()
	set := &rule.Set{}
	for id, pattern := range read {
		set.Rules = append(set.Rules, rule.Rule{ID: id, Match: rule.Match{Paths: []string{pattern}},
			Key: []rule.Source{{Kind: rule.Global}}, Quota: rule.Quota{Rates: []rule.Rate{{N: 1, Period: time.Minute}}}})
	}
	table, err := rule.Compile(set, o)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func matches(table *rule.Table, path, read string) bool {
	for _, hit := range table.Match(nil, &rule.Request{Path: path}) {
		if hit.ID == read {
			return true
		}
	}
	return false
}

// comparePaths asks servers for many odd paths, and returns how many were read as each pattern.
func comparePaths(t *testing.T, addresses []string, matches func(path, read string) bool) map[string]int {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 8}
	defer transport.CloseIdleConnections()
	paths := oddPaths(15_000)
	var mu sync.Mutex
	hits, escaped := map[string]int{}, 0
	var all sync.WaitGroup
	next := make(chan *url.URL)
	for range 8 {
		all.Go(func() {
			for path := range next {
				for i, address := range addresses {
					u := *path
					u.Scheme, u.Host = "http", address
					answer, err := transport.RoundTrip(&http.Request{Method: "GET", URL: &u, Header: http.Header{}})
					if err != nil {
						t.Errorf("%s: %v", path, err)
						continue
					}
					body, _ := io.ReadAll(answer.Body)
					answer.Body.Close()
					found := answer.Header["Read"]
					if i == 1 && string(body) == "file" {
						found = []string{"file"}
					}
					mu.Lock()
					for _, read := range found {
						hits[read]++
						if !matches(path.EscapedPath(), read) {
							if escaped++; escaped <= 50 {
								t.Errorf("%s is read as %s, and escapes its rule", path.EscapedPath(), read)
							}
						}
					}
					mu.Unlock()
				}
			}
		})
	}
	for _, path := range paths {
		next <- path
	}
	close(next)
	all.Wait()
	if escaped > 0 {
		t.Errorf("%d escape", escaped)
	}
	return hits
}

// oddPaths writes /api/login, and what is below it, in many ways. They are the same each time.
func oddPaths(n int) []*url.URL {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(all ...string) string { return all[random.IntN(len(all))] }
	odd := []string{
		"/", "//", ".", "..", "...", "/.", "/..", "/./", "/../", "%2e", "%2E", "/%2e%2E", "%2f", "%2F", "%5c", `\`, ";", ";v=1", "/;/", "%20", "%20.", ".%20", ". ",
		"%09", "%00", "%0a", "%C0%AF", "%c2%a0", "%25", "%252e", "%2520", "%3b", "%3f", "%23", "%2b", "+", "~", "x", "/x", "x/", "/x/../", "%61", "::$DATA", "%3a", "*",
	}
	seen, all := map[string]bool{}, []*url.URL{}
	for len(all) < n {
		path := pick("/api/login", "/api/login", "/api/login", "/api/login/", "/api/login/x", "/API/Login", "/api/log%69n")
		for range 1 + random.IntN(3) {
			at := random.IntN(len(path) + 1)
			if random.IntN(3) == 0 {
				at = len(path)
			}
			path = path[:at] + pick(odd...) + path[at:]
			if random.IntN(8) == 0 {
				at = random.IntN(len(path))
				path = path[:at] + fmt.Sprintf("%%%02x", path[at]) + path[at+1:]
			}
		}
		u, err := url.ParseRequestURI(path)
		if err != nil || path[0] != '/' || seen[u.EscapedPath()] {
			continue // the gateway would not forward it
		}
		seen[u.EscapedPath()] = true
		all = append(all, &url.URL{Path: u.Path, RawPath: u.RawPath})
	}
	return all
}
