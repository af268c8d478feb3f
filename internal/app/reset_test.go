package app

import (
	"encoding/json"
	"net/http"
	"strconv"
	"testing"

	"github.com/weirhq/weir/internal/server/httpapi"
	"github.com/weirhq/weir/internal/testkit/testredis"
)

// A fixed window ends at a whole hour, and every answer says so to the second: allowed
// or denied, in a body or in a header, by our clock or by Redis's.
func TestResetIsTheEndOfTheWindow(t *testing.T) {
	const rules = "rules: [{id: api, key: api_key, algorithm: fixed_window, limit: 20/1h}]\n"
	for name, store := range map[string]string{"memory": "", "redis": "redis://" + testredis.Start(t).Addr + "?timeout=5s"} {
		t.Run(name, func(t *testing.T) {
			o, _ := prepared(t, Options{Store: store}, rules)
			url := "http://" + started(t, o).Addrs().HTTP.String()
			for i := range 40 {
				var a httpapi.CheckAnswer
				_, body := ask(t, nil, "POST", url+"/v1/check", `{"api_key": "alice"}`)
				if err := json.Unmarshal([]byte(body), &a); err != nil {
					t.Fatal(err)
				}
				if a.ResetAt == 0 || a.ResetAt%3600 != 0 || a.Results[0].ResetAt != a.ResetAt {
					t.Errorf("check %d: %d s past the hour: %s", i, a.ResetAt%3600, body)
				}
				req, err := http.NewRequest("GET", url+"/v1/authz", nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("X-API-Key", "bob")
				req.Close = true
				resp, err := http.DefaultTransport.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if at, err := strconv.Atoi(resp.Header.Get("X-RateLimit-Reset")); err != nil || at%3600 != 0 {
					t.Errorf("authz %d: %d s past the hour: %v", i, at%3600, resp.Header)
				}
			}
		})
	}
}
