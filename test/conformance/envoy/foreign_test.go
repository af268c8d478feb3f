package envoy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

const foreignFile = `
domain: foreign
descriptors:
  - key: user
    rate_limit: {unit: year, requests_per_unit: 2, name: per-user}
`

// The client of the other service understands weir as it understands its own.
func TestForeignClient(t *testing.T) {
	s := begin(t, map[string]string{"foreign.yaml": foreignFile}, settings{})
	ask := func(address string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), programs.Client,
			"-dial_string", address, "-domain", "foreign", "-descriptors", "user=x").CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		_, response, found := strings.Cut(string(out), "response: ")
		if !found {
			t.Fatalf("there is no response in\n%s", out)
		}
		response, _, _ = strings.Cut(response, "duration_until_reset") // seconds go by
		return strings.Join(strings.Fields(response), " ")
	}
	for i, want := range []string{
		`overall_code:OK statuses:{code:OK current_limit:{name:"per-user" requests_per_unit:2 unit:YEAR} limit_remaining:1`,
		`overall_code:OK statuses:{code:OK current_limit:{name:"per-user" requests_per_unit:2 unit:YEAR}`,
		`overall_code:OVER_LIMIT statuses:{code:OVER_LIMIT current_limit:{name:"per-user" requests_per_unit:2 unit:YEAR}`,
	} {
		theirs, ours := ask(s.peer.GRPC), ask(s.address)
		if theirs != ours || ours != want {
			t.Errorf("request %d: they say\n%s\nand we\n%s\nwant\n%s", i+1, theirs, ours, want)
		}
	}
}

// The same question as JSON has the same status and the same answer.
func TestJSON(t *testing.T) {
	s := begin(t, map[string]string{"foreign.yaml": foreignFile}, settings{})
	ours := httptest.NewServer(s.service.JSON())
	defer ours.Close()
	defer http.DefaultClient.CloseIdleConnections()
	post := func(url, body string) (int, string) {
		t.Helper()
		resp, err := http.Post(url, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	good := `{"domain": "foreign", "descriptors": [{"entries": [{"key": "user", "value": "x"}]}]}`
	for _, c := range []struct {
		body   string
		status int
	}{
		{good, 200}, {good, 200}, {good, 429}, {good, 429},
		{``, 400}, {`{"domain": "foreign"}`, 400}, {`{"descriptors": [{}]}`, 400}, {`{"domain": 7}`, 400},
		{strings.Replace(good, "{", `{"unknown": 1, `, 1), 400},
		{`{"domain": "else", "descriptors": [{}]}`, 200},
	} {
		theirStatus, theirText := post("http://"+s.peer.HTTP+"/json", c.body)
		ourStatus, ourText := post(ours.URL, c.body)
		if theirStatus != c.status || ourStatus != c.status {
			t.Errorf("%s: %d from them, %d from us, want %d", c.body, theirStatus, ourStatus, c.status)
			continue
		}
		if c.status == 400 {
			continue // each in its own words
		}
		var theirs, mine pb.RateLimitResponse
		if err := protojson.Unmarshal([]byte(theirText), &theirs); err != nil {
			t.Fatal(err)
		}
		if err := protojson.Unmarshal([]byte(ourText), &mine); err != nil {
			t.Fatal(err)
		}
		resetSeconds(&theirs, &mine, 2)
		if !proto.Equal(&theirs, &mine) {
			t.Errorf("%s: they say\n%s\nand we\n%s", c.body, theirText, ourText)
		}
	}
}
