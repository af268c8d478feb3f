package llm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/weirhq/weir/engine"
)

// callTool is quoted in docs/guides/mcp.md.
func callTool(ctx context.Context, gateway, tool string) (*mcp.CallToolResult, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1.0.0"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: gateway + "/mcp"}, nil)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	return session.CallTool(ctx, &mcp.CallToolParams{Name: tool})
}

// tools is a server of MCP, which counts the calls that reach it.
type tools struct {
	*mcp.Server
	calls atomic.Int64
}

func newTools() *tools {
	s := &tools{Server: mcp.NewServer(&mcp.Implementation{Name: "tools", Version: "1.0.0"}, nil)}
	for _, name := range []string{"search", "export", "other"} {
		mcp.AddTool(s.Server, &mcp.Tool{Name: name}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			s.calls.Add(1)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "found by " + name}}}, nil, nil
		})
	}
	return s
}

// newToolBench is a gateway in front of a server of MCP: with sessions, or as in the revision without.
func newToolBench(t *testing.T, rules string, stateless bool) (*bench, *tools) {
	t.Helper()
	b, s := &bench{t: t, events: make(chan engine.HoldKind, 1000)}, newTools()
	b.start(rules, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.Server }, &mcp.StreamableHTTPOptions{Stateless: stateless}))
	return b, s
}

const ofTools = `rules:
  - {id: tools, match: {path: /mcp, attributes: {mcp.tool: [search, export, "*"]}}, mcp: {}, key: [ip, "attr:mcp.tool"], algorithm: fixed_window, limit: 2/1d}
`

// connect opens a session.
func connect(t *testing.T, b *bench) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1.0.0"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: b.URL + "/mcp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// A denied call fails with a text for the model, and the session goes on.
func TestToolsGo(t *testing.T) {
	for _, stateless := range []bool{false, true} {
		b, server := newToolBench(t, ofTools, stateless)
		session := connect(t, b)
		call := func(tool string) (string, error) {
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool})
			if err != nil {
				return "", err
			}
			return result.Content[0].(*mcp.TextContent).Text, nil
		}
		for range 2 {
			if text, err := call("search"); err != nil || text != "found by search" {
				t.Fatalf("%q, %v", text, err)
			}
		}
		_, err := call("search")
		var wire *jsonrpc.Error
		if !errors.As(err, &wire) || wire.Code != 429 || wire.Message != "rate limit for tool search: try again in 43200 s" {
			t.Errorf("%v", err)
		}
		if _, err := session.ListTools(t.Context(), nil); err != nil {
			t.Error(err)
		}
		if text, err := call("other"); err != nil || text != "found by other" {
			t.Errorf("%q, %v", text, err)
		}
		if got := server.calls.Load(); got != 3 {
			t.Errorf("%d calls reached the server, want 3", got)
		}
		used := fmt.Sprint(b.spent("tools", "ip:127.0.0.1|attr:mcp.tool:search"), b.spent("tools", "ip:127.0.0.1|attr:mcp.tool:export"), b.spent("tools", "ip:127.0.0.1|attr:mcp.tool:*"))
		if used != "2 0 1" {
			t.Errorf("%s are used", used)
		}
		if version := session.InitializeResult().ProtocolVersion; (version >= "2026") != stateless {
			t.Errorf("the revision is %s", version)
		}
	}
}

// What the guide shows works, with the rules that it shows.
func TestToolsGuide(t *testing.T) {
	rules, err := os.ReadFile("../../examples/rules/mcp.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b, server := newToolBench(t, strings.ReplaceAll(string(rules), "user", "ip"), false)
	if result, err := callTool(t.Context(), b.URL, "search"); err != nil || result.IsError || server.calls.Load() != 1 {
		t.Errorf("%+v, %v", result, err)
	}
	if got := b.spent("tools", "ip:127.0.0.1|attr:mcp.tool:search"); got != 1 {
		t.Errorf("%d are used", got)
	}
}
