package llm

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"testing"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
)

// agentScript is embedded, so that go test sees when it changes.
//
//go:embed node/agent.mjs
var agentScript string

// The client and the server of the official SDK for TypeScript, with the gateway between them: a denied call fails with a
// text for the model, and the session goes on.
func TestToolsNode(t *testing.T) {
	testkit.InstallNode(t, "node")
	cmd := exec.CommandContext(t.Context(), "node", "--input-type=module", "--eval", agentScript)
	cmd.Dir, cmd.Stderr = "node", t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ask, answers := json.NewEncoder(in), json.NewDecoder(out)
	var line struct {
		Port  int
		Text  string
		Error *struct {
			Code    int
			Message string
		}
	}
	if err := answers.Decode(&line); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, events: make(chan engine.HoldKind, 1000)}
	server := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: fmt.Sprint("127.0.0.1:", line.Port)})
	server.ErrorLog = log.New(io.Discard, "", 0) // streams are cut at the end
	b.start(ofTools, server)
	for i, c := range []struct{ tool, text, message string }{
		{"search", "found by search", ""}, {"search", "found by search", ""},
		{"search", "", "MCP error 429: rate limit for tool search: try again in 43200 s"},
		{"other", "found by other", ""}, {"", "search,other", ""},
	} {
		if err := ask.Encode(object{"url": b.URL + "/mcp", "tool": c.tool}); err != nil {
			t.Fatal(err)
		}
		line.Text, line.Error = "", nil
		if err := answers.Decode(&line); err != nil {
			t.Fatal(err)
		}
		if e := line.Error; line.Text != c.text || (e == nil) != (c.message == "") || e != nil && (e.Code != 429 || e.Message != c.message) {
			t.Errorf("call %d of %s: %q, %+v", i, c.tool, line.Text, e)
		}
	}
	in.Close()
	if err := cmd.Wait(); err != nil && !t.Failed() {
		t.Error(err)
	}
}
