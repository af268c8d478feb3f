package e2e

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Ten thousand connections at once, or as many as the limit of open files has room for,
// are served, each of them, while a client on another is answered as ever.
func TestManyConnections(t *testing.T) {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	connections := int(min(10_000, files.Max*3/4)) // the rest is for all else that is open, here and there
	if connections < 300 {
		t.Fatalf("%d open files are too few; raise the limit with ulimit -Hn 1024", files.Max)
	}
	files.Cur = files.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	passed := connections * 3 / 2
	write(t, dir, "rules.yaml", fmt.Sprintf("rules: [{id: all, key: global, algorithm: sliding_log, limit: %d/1d}]", passed))
	p := start(t, dir, "serve", "--http", "127.0.0.1:0")
	address := strings.TrimPrefix(p.URL, "http://")
	conns := make([]net.Conn, connections)
	t.Cleanup(func() {
		for _, c := range conns {
			if c != nil {
				c.Close()
			}
		}
	})
	each := func(do func(i int) error) {
		t.Helper()
		var wg sync.WaitGroup
		for worker := range 64 {
			wg.Go(func() {
				for i := worker; i < connections; i += 64 {
					if err := do(i); err != nil {
						t.Errorf("connection %d: %v", i, err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	allowed := make([]int, connections)
	for round := range 2 {
		// All ask before anybody reads. Each asks as soon as it is connected, since weir does
		// not wait for long.
		each(func(i int) (err error) {
			if round == 0 {
				if conns[i], err = net.Dial("tcp", address); err != nil {
					return err
				}
			}
			_, err = fmt.Fprintf(conns[i], "POST /v1/check HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}")
			return err
		})
		each(func(i int) error {
			resp, err := http.ReadResponse(bufio.NewReader(conns[i]), nil)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			if strings.Contains(string(text), `"allowed":true`) {
				allowed[i]++
			}
			if err == nil && resp.StatusCode != http.StatusOK {
				err = fmt.Errorf("round %d: %d %s", round, resp.StatusCode, text)
			}
			return err
		})
	}
	total := 0
	for _, n := range allowed {
		total += n
	}
	if total != passed {
		t.Errorf("%d of %d were passed, want %d", total, 2*connections, passed)
	}
	if a := ask(t, client(t), "GET", p.URL+"/healthz", ""); a.Status != http.StatusOK {
		t.Errorf("%d", a.Status)
	}
}

// Clients that send a byte now and then are cut off, and delay no other client.
func TestSlowClients(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "rules.yaml", perUser)
	p := start(t, dir, "serve", "--http", "127.0.0.1:0")
	address := strings.TrimPrefix(p.URL, "http://")
	begin := time.Now()
	var wg sync.WaitGroup
	for range 200 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		wg.Go(func() {
			// The server ends it: reading returns. Writing goes on meanwhile.
			go func() {
				for _, b := range []byte("POST /v1/check HTTP/1.1\r\nX-Slow: " + strings.Repeat("a", 1000)) {
					if _, err := conn.Write([]byte{b}); err != nil {
						return
					}
					time.Sleep(50 * time.Millisecond)
				}
			}()
			io.Copy(io.Discard, conn)
		})
	}
	c := client(t)
	for range 50 {
		if a := ask(t, c, "POST", p.URL+"/v1/check", `{"user": "bob", "peek": true}`); a.Status != http.StatusOK {
			t.Fatalf("%d %s", a.Status, a.Text)
		}
	}
	wg.Wait()
	t.Logf("all were cut off after %s", time.Since(begin).Round(time.Second))
}

// Whatever is too large is denied in words, and costs no memory to speak of.
func TestOversized(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "rules.yaml", perUser)
	p := start(t, dir, "serve", "--http", "127.0.0.1:0")
	c := client(t)
	long := strings.Repeat("a", 1<<20)
	for name, call := range map[string]struct {
		method, path, body, header string
		want                       int
	}{
		"body":       {"POST", "/v1/check", `{"user": "` + long + `"}`, "", http.StatusRequestEntityTooLarge},
		"user":       {"POST", "/v1/check", `{"user": "` + long[:40_000] + `"}`, "", http.StatusBadRequest},
		"depth":      {"POST", "/v1/check", strings.Repeat("[", 30_000), "", http.StatusBadRequest},
		"cost":       {"POST", "/v1/check", `{"user": "a", "cost": 1e300}`, "", http.StatusBadRequest},
		"negative":   {"POST", "/v1/check", `{"user": "a", "cost": -1}`, "", http.StatusBadRequest},
		"attributes": {"POST", "/v1/check", `{"attributes": {` + many(2000) + `}}`, "", http.StatusBadRequest},
		"header":     {"POST", "/v1/check", `{}`, long[:200_000], http.StatusRequestHeaderFieldsTooLarge},
		"rules":      {"PUT", "/v1/rules", "rules: [] # " + strings.Repeat(long, 6), "", http.StatusRequestEntityTooLarge},
		"rule id":    {"PUT", "/v1/rules/" + long[:5000], "{}", "", http.StatusBadRequest},
		"key":        {"GET", "/v1/keys?key=user:" + long[:20_000], "", "", http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			headers := []string{"If-Match", "*"}
			if call.header != "" {
				headers = append(headers, "X-Long", call.header)
			}
			a, err := try(c, call.method, p.URL+call.path, call.body, headers...)
			if err != nil {
				t.Fatal(err)
			}
			if a.Status != call.want {
				t.Errorf("%d, want %d: %.300s", a.Status, call.want, a.Text)
			}
			if call.header == "" && (a.Detail == "" || len(a.Text) > 2000) {
				t.Errorf("it says %.300s", a.Text)
			}
		})
	}
}

func many(n int) string {
	fields := make([]string, n)
	for i := range fields {
		fields[i] = fmt.Sprintf(`"a%d": "b"`, i)
	}
	return strings.Join(fields, ", ")
}

// Hostile bodies are rejected; none is an internal error.
func TestFuzzedChecks(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "rules.yaml", perUser)
	p := start(t, dir, "serve", "--http", "127.0.0.1:0")
	c := client(t)
	random := rand.New(rand.NewPCG(1, 2))
	seed := `{"ip": "192.0.2.1", "user": "alice", "path": "/a?b", "headers": {"A": "b"}, "cost": 12, "peek": true}`
	for range 3000 {
		body := []byte(seed)
		for range 1 + random.IntN(4) {
			switch i := random.IntN(len(body)); random.IntN(3) {
			case 0:
				body[i] = byte(random.IntN(256))
			case 1:
				body = append(body[:i], body[i+1:]...)
			default:
				j := random.IntN(len(body))
				body = append(body[:i], body[j:]...)
			}
			if len(body) == 0 {
				body = []byte("{")
			}
		}
		if a := ask(t, c, "POST", p.URL+"/v1/check", string(body)); a.Status != http.StatusOK && a.Status != http.StatusBadRequest {
			t.Errorf("%q: %d %s", body, a.Status, a.Text)
		}
	}
}
