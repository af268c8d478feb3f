package e2e

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/testkit/testredis"
)

// Credentials of clients appear in no log, no answer, no statistics, and nowhere in
// Redis. A client can still be looked up by its credential.
func TestSecretsAreNotKept(t *testing.T) {
	const secret = "hunter2-0a1b2c3d"
	u := newUpstream(t)
	redis := testredis.Start(t)
	dir := t.TempDir()
	write(t, dir, "rules.yaml", `
rules:
  - {id: cookie, key: "cookie:visitor", algorithm: sliding_log, limit: 2/1d}
  - {id: query, key: "query:share", algorithm: sliding_log, limit: 2/1d}
  - {id: both, key: ["cookie:visitor", "query:share"], algorithm: sliding_log, limit: 2/1d, mode: shadow}
  - {id: header, key: "header:Authorization", limit: 1000/1s}
  - {id: key, key: api_key, limit: 1000/1s}
`)
	p := start(t, dir, "gateway", "--http", "127.0.0.1:0", "--listen", "127.0.0.1:0", "--upstream", u.URL,
		"--store", "redis://"+redis.Addr+"?timeout=5s", "--log-level", "debug")
	c := client(t)
	told := map[string]string{}
	for i := range 3 {
		a := ask(t, c, "GET", p.Gateway+"/?share="+secret, "", "Cookie", "visitor="+secret, "Authorization", "Bearer "+secret, "X-API-Key", secret)
		if want := map[bool]int{true: http.StatusOK, false: http.StatusTooManyRequests}[i < 2]; a.Status != want {
			t.Fatalf("request %d: %d %s", i, a.Status, a.Text)
		}
		told["the answer"] += a.Text
		for name, values := range a.Header {
			told["the answer"] += name + strings.Join(values, " ")
		}
	}
	var top string
	waitFor(t, "the statistics to have the client", func() bool {
		top = ask(t, c, "GET", p.URL+"/v1/stats/top?by=denied&window=minute", "").Text
		return strings.Contains(top, "cookie:visitor:")
	})
	told["the rankings"] = top
	for _, path := range []string{"/metrics", "/v1/stats/live", "/v1/alerts", "/v1/rules"} {
		told[path] = ask(t, c, "GET", p.URL+path, "").Text
	}
	for _, key := range []string{"cookie:visitor:" + secret, "query:share:" + secret} {
		a := ask(t, c, "GET", p.URL+"/v1/keys?key="+url.QueryEscape(key), "")
		if a.Status != http.StatusOK || !strings.Contains(a.Text, `"remaining":0`) {
			t.Errorf("%s: %d %s", key, a.Status, a.Text)
		}
	}
	redis.Do("CONFIG", "SET", "rdbcompression", "no")
	redis.Do("SAVE")
	place := strings.Fields(redis.Do("CONFIG", "GET", "dir"))
	file, err := os.ReadFile(filepath.Join(place[len(place)-1], "dump.rdb"))
	if err != nil {
		t.Fatal(err)
	}
	told["Redis"], told["the log"] = string(file), p.log.String()
	if !strings.Contains(told["Redis"], "cookie:visitor:") {
		t.Error("Redis has nothing of the client")
	}
	for where, text := range told {
		if i := strings.Index(text, secret); i >= 0 {
			t.Errorf("the secret is in %s: …%q", where, text[max(0, i-100):i+len(secret)])
		}
	}
}
