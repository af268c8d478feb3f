package envoyrls

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protojson"
)

func TestJSON(t *testing.T) {
	b := newBench(t, failing, Options{})
	server := httptest.NewServer(b.JSON())
	defer server.Close()
	post := func(body string) (int, string, string) {
		t.Helper()
		resp, err := server.Client().Post(server.URL+"/json", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, resp.Header.Get("Content-Type"), string(text)
	}
	ask := func(key string) string {
		return `{"domain": "d", "descriptors": [{"entries": [{"key": "` + key + `", "value": "x"}]}]}`
	}
	for _, c := range []struct {
		body   string
		status int
		want   string
	}{
		{ask("open"), 200, "ok | ok 1 of 2/day in 86399s"},
		{ask("open"), 200, "ok | ok 0 of 2/day in 86399s"},
		{ask("open"), 429, "over | over 0 of 2/day in 86399s"},
		{ask("unknown"), 200, "ok | ok 0"},
		{"", 400, ""}, {"[]", 400, ""}, {"{}", 400, ""}, {`{"domain": "d", "more": 1}`, 400, ""},
		{`{"domain": "` + strings.Repeat("d", MaxBody) + `"}`, 413, ""},
	} {
		status, kind, text := post(c.body)
		if status != c.status {
			t.Errorf("%.100s: %d, want %d", c.body, status, c.status)
			continue
		}
		if c.want == "" {
			continue
		}
		var r pb.RateLimitResponse
		if err := protojson.Unmarshal([]byte(text), &r); err != nil || kind != "application/json" {
			t.Errorf("%s, %v, %s", text, err, kind)
		}
		if got := said(&r, nil); got != c.want {
			t.Errorf("%s: %s, want %s", c.body, got, c.want)
		}
	}
	b.lost.Store(true)
	if status, _, text := post(ask("error")); status != http.StatusServiceUnavailable || !strings.Contains(text, "on_failure: error") {
		t.Errorf("%d, %s", status, text)
	}
}
