package resp

import (
	"context"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/server/respapi"
	"github.com/weirhq/weir/internal/trust"
	"github.com/weirhq/weir/rule"
	_ "github.com/weirhq/weir/rule/rulefile"
	"github.com/weirhq/weir/store/memory"
)

var token = strings.Repeat("s", 32)

// noon is the time of the store: it stands still.
func noon() weir.Micros { return weir.MicrosOf(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)) }

// serve starts a server that requires a token for CL.THROTTLE, and returns its address.
func serve(t *testing.T) string {
	t.Helper()
	set, problems := rule.Parse("", []byte("rules: [{id: api, match: {path: /api/**}, key: user, limit: 100/1m}]"))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Options{Store: memory.New(memory.Options{Clock: noon}), Clock: noon})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	e.Install(table, 1)
	list, err := trust.ParseTokens([]byte("app use " + token))
	if err != nil {
		t.Fatal(err)
	}
	s, err := respapi.New(respapi.Options{Service: manage.Service{
		Engine: e, Rules: struct{ repo.Repository }{}, Tokens: func() *trust.List { return list },
	}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// said is what a client has got: for the first CL.THROTTLE of a limit of 3 per minute, for
// three more in a pipeline, for a check, and for two mistakes.
type said struct {
	First    []int64
	Pipeline [][]int64
	Check    any
	Error    string
	Unknown  string
}

// expect compares what a client has got, in the types of its version of the protocol.
func expect(t *testing.T, got said, version int) {
	t.Helper()
	if want := []int64{0, 3, 2, -1, 60}; !reflect.DeepEqual(got.First, want) {
		t.Errorf("first: got %v, want %v", got.First, want)
	}
	if want := [][]int64{{0, 3, 1, -1, 120}, {0, 3, 0, -1, 180}, {1, 3, 0, 60, 180}}; !reflect.DeepEqual(got.Pipeline, want) {
		t.Errorf("pipeline: got %v, want %v", got.Pipeline, want)
	}
	switch check := got.Check.(type) {
	case map[string]any:
		if version != 3 || check["allowed"] != true || check["rule"] != "api" || number(check["remaining"]) != 99 {
			t.Errorf("check: got %v", check)
		}
	case []any:
		if version != 2 || check[0] != "allowed" || number(check[1]) != 1 || check[5] != "api" || number(check[9]) != 99 {
			t.Errorf("check: got %v", check)
		}
	default:
		t.Errorf("check: got %v", check)
	}
	if want := "BAD_FIELD usr: there is no such field; did you mean user?"; got.Error != want {
		t.Errorf("error: got %q, want %q", got.Error, want)
	}
	// rueidis leaves ERR out.
	if want := "unknown command 'GET', with args beginning with: 'x' "; strings.TrimPrefix(got.Unknown, "ERR ") != want {
		t.Errorf("unknown: got %q, want %q", got.Unknown, want)
	}
}

// number is one that came as JSON, or not.
func number(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case float64:
		return int64(v)
	}
	return -1
}
