package grpcapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weirhq/weir/internal/clients"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/server/httpapi"
	"github.com/weirhq/weir/internal/trust"
	"github.com/weirhq/weir/rule"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
)

// fullClient has every field, and something without effect.
const fullClient = `{"client":"user:ann","parent":"org:acme","tier":"gold","zone":"Europe/Berlin","starts":15,"limits":{"api":"500/1m","action":{"limits":["5/1m","9/1h"]},"queue":{"limit":"2/1s","burst":1125899906842624}},"blocked":true,"note":"contract 4711"}`

// registry has some clients.
func registry(t testing.TB, lines ...string) *clients.Registry {
	t.Helper()
	r := clients.New(clients.Options{Now: func() time.Time { return begin }, Logger: slog.New(slog.DiscardHandler)})
	var changes []clients.Change
	for _, line := range append(lines, `{"client":"org:acme","starts":"01-15"}`, fullClient, `{"client":"api_key:ann-key-1","parent":"user:ann"}`) {
		c, problems := rule.ReadClient("", []byte(line))
		if err := problems.Err(); err != nil {
			t.Fatal(err)
		}
		changes = append(changes, clients.Change{Client: c})
	}
	outcomes, err := r.Apply(t.Context(), "test", changes)
	for _, o := range outcomes {
		err = errors.Join(err, o.Err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Both APIs say the same of clients, in every field, and reject the same calls.
func TestClientsAreTheSameOverHTTP(t *testing.T) {
	s := newPipe(t, Options{})
	h, err := httpapi.New(httpapi.Options{Service: s.options.Service})
	if err != nil {
		t.Fatal(err)
	}
	get := func(name string) (proto.Message, error) {
		return s.directory.GetClient(t.Context(), &pb.GetClientRequest{Client: name})
	}
	list := func(req *pb.ListClientsRequest) func() (proto.Message, error) {
		return func() (proto.Message, error) { return s.directory.ListClients(t.Context(), req) }
	}
	key := s.options.Clients
	page, _ := key.List(clients.Query{Kind: "api_key"})
	for path, call := range map[string]func() (proto.Message, error){
		"/user:ann":                          func() (proto.Message, error) { return get("user:ann") },
		"/" + page[0].Name:                   func() (proto.Message, error) { return get("api_key:ann-key-1") },
		"/user:nobody":                       func() (proto.Message, error) { return get("user:nobody") },
		"/ann":                               func() (proto.Message, error) { return get("ann") },
		"/user:" + strings.Repeat("x", 1024): func() (proto.Message, error) { return get("user:" + strings.Repeat("x", 1024)) },
		"":                                   list(&pb.ListClientsRequest{}),
		"?limit=1":                           list(&pb.ListClientsRequest{Limit: 1}),
		"?limit=1&after=org:acme":            list(&pb.ListClientsRequest{Limit: 1, After: "org:acme"}),
		"?parent=org:acme":                   list(&pb.ListClientsRequest{Parent: "org:acme"}),
		"?parent=acme":                       list(&pb.ListClientsRequest{Parent: "acme"}),
		"?tier=gold&kind=user:&contains=an":  list(&pb.ListClientsRequest{Tier: "gold", Kind: "user:", Contains: "an"}),
		"?limit=1001":                        list(&pb.ListClientsRequest{Limit: 1001}),
		"?limit=-1":                          list(&pb.ListClientsRequest{Limit: -1}),
		"?tier=" + url.QueryEscape("ü") + "&limit=7": list(&pb.ListClientsRequest{Tier: "ü", Limit: 7}),
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/v1/clients"+path, nil))
		answer, err := call()
		if w.Code != http.StatusOK {
			var p httpapi.Problem
			if e := json.Unmarshal(w.Body.Bytes(), &p); e != nil || err == nil {
				t.Fatalf("%s: HTTP says %s, and gRPC %v", path, w.Body, answer)
			}
			if got, want := read(err).info.GetReason(), strings.ToUpper(strings.ReplaceAll(strings.TrimPrefix(p.Type, "urn:weir:problem:"), "-", "_")); got != want {
				t.Errorf("%s: gRPC says %s, and HTTP %s", path, got, want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: HTTP says %s, and gRPC %v", path, w.Body, err)
			continue
		}
		text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := tree(t, text), tree(t, w.Body.Bytes()); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: gRPC says\n%v\nand HTTP\n%v", path, got, want)
		}
	}
	full, err := s.directory.GetClient(t.Context(), &pb.GetClientRequest{Client: "user:ann"})
	if err != nil {
		t.Fatal(err)
	}
	entry := reflect.TypeFor[httpapi.EntryAnswer]()
	fields := full.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if !full.ProtoReflect().Has(fields.Get(i)) {
			t.Errorf("the client does not show %s", fields.Get(i).Name())
		}
	}
	for i := range entry.NumField() {
		name, _, _ := strings.Cut(entry.Field(i).Tag.Get("json"), ",")
		if fields.ByName(protoreflect.Name(name)) == nil {
			t.Errorf("gRPC does not have the field %s of HTTP", name)
		}
	}
}

// tree is JSON with its times as they are, whatever their text.
func tree(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, value := range v {
				walk(value)
				if text, ok := value.(string); ok && name == "at" {
					at, err := time.Parse(time.RFC3339Nano, text)
					if err != nil {
						t.Fatal(err)
					}
					v[name] = at.UTC().String()
				}
			}
		case []any:
			for _, value := range v {
				walk(value)
			}
		}
	}
	walk(all)
	if list, ok := all["clients"].([]any); ok && len(list) == 0 {
		delete(all, "clients") // protobuf does not tell it from none
	}
	return all
}

// A page of large clients ends before an answer is longer than libraries accept, and no client is left out.
func TestClientsPagesAreBounded(t *testing.T) {
	var lines []string
	var limits []string
	for i := range 60 {
		limits = append(limits, fmt.Sprintf(`"%s%02d":"5/1m"`, strings.Repeat("r", 60), i))
	}
	for i := range 700 {
		lines = append(lines, fmt.Sprintf(`{"client":"user:%04d","limits":{%s}}`, i, strings.Join(limits, ",")))
	}
	s := newPipe(t, Options{Service: manage.Service{Clients: registry(t, lines...)}})
	req, seen, pages := &pb.ListClientsRequest{Kind: "user", Limit: clients.MaxPage}, map[string]bool{}, 0
	h, err := httpapi.New(httpapi.Options{Service: s.options.Service})
	if err != nil {
		t.Fatal(err)
	}
	for after := "user:"; after != ""; {
		w, page := httptest.NewRecorder(), httpapi.EntriesAnswer{}
		h.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/v1/clients?kind=user&limit=1000&after="+after, nil))
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || w.Body.Len() > 5<<19 {
			t.Fatalf("a page of %d bytes: %v", w.Body.Len(), err)
		}
		for _, c := range page.Clients {
			seen[c.Client] = true
		}
		after = page.Next
	}
	if len(seen) != len(lines)+1 {
		t.Errorf("over HTTP, there are %d clients", len(seen))
	}
	clear(seen)
	for {
		a, err := s.directory.ListClients(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		pages++
		for _, c := range a.Clients {
			seen[c.Client] = true
		}
		if req.After = a.Next; req.After == "" {
			break
		}
	}
	if len(seen) != len(lines)+1 || pages < 2 {
		t.Errorf("%d clients on %d pages", len(seen), pages)
	}
}

// Who has the right clients alone can read the directory, and nothing else. Before the clients were read once, nothing is said of any.
func TestClientsRightAndStart(t *testing.T) {
	list, err := trust.ParseTokens([]byte("shop clients " + readerToken + "\napp check " + userToken))
	if err != nil {
		t.Fatal(err)
	}
	unread := clients.New(clients.Options{})
	s := newPipe(t, Options{Service: manage.Service{Tokens: func() *trust.List { return list }}})
	if _, err := s.directory.GetClient(as(t.Context(), readerToken), &pb.GetClientRequest{Client: "user:ann"}); err != nil {
		t.Error(err)
	}
	_, err = s.keys.GetKey(as(t.Context(), readerToken), &pb.GetKeyRequest{Key: "user:ann"})
	want(t, err, fault.Forbidden)
	_, err = s.directory.ListClients(as(t.Context(), userToken), &pb.ListClientsRequest{})
	want(t, err, fault.Forbidden, "clients")
	s = newPipe(t, Options{Service: manage.Service{Clients: unread}})
	_, err = s.directory.ListClients(t.Context(), &pb.ListClientsRequest{})
	want(t, err, fault.StoreUnavailable, "not loaded")
}
