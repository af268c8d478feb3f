package grpcapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/redis/rueidis"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/client"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/envoy/envoyconfig"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/server/envoyrls"
	"github.com/weirhq/weir/internal/server/httpapi"
	"github.com/weirhq/weir/internal/server/respapi"
	"github.com/weirhq/weir/rule"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
)

// filler is an observer that gives every field of a verdict a value that no other field has,
// before a protocol sees it. It returns the values, by field.
type filler struct {
	texts  map[string][]string // how a field may look in an answer
	denies atomic.Bool
}

func (f *filler) Observe(_ *rule.Request, v *engine.Verdict, _ time.Duration) {
	f.texts = map[string][]string{}
	f.fill("Verdict.", reflect.ValueOf(v).Elem(), 1000)
	f.fill("Result.", reflect.ValueOf(&v.Results[0]).Elem(), 2000)
	f.texts["Verdict.Level"], f.texts["Result.Level"] = []string{"user"}, []string{"user"} // as the rule and the key have it
	v.Allowed, v.Reason = !f.denies.Load(), engine.Limits
	v.Results[0].Allowed = v.Allowed
	if f.denies.Load() {
		f.texts["Verdict.Allowed"], f.texts["Result.Allowed"] = []string{"false", "0"}, []string{"false", "0"}
	}
}

// fill sets the exported fields of a struct, those that are embedded among them.
func (f *filler) fill(path string, s reflect.Value, n int64) {
	for i := range s.NumField() {
		field, to := s.Type().Field(i), s.Field(i)
		n += 7
		switch {
		case !field.IsExported():
			continue
		case field.Name == "Demand": // an index, which stays one
			f.texts[path+field.Name] = nil
			continue
		case field.Anonymous:
			f.fill(path, to, n+100)
			continue
		}
		texts := []string{fmt.Sprint(n)}
		if field.Type == reflect.TypeFor[error]() {
			to.Set(reflect.ValueOf(errors.New("lost")))
			f.texts[path+field.Name] = []string{"true"}
			continue
		}
		switch to.Interface().(type) {
		case bool:
			to.SetBool(true)
			texts = []string{"true", "1"}
		case time.Duration:
			to.SetInt(n * int64(time.Millisecond))
			texts = append(texts, (time.Duration(n) * time.Millisecond).String())
		case weir.Micros:
			to.SetInt(begin.Truncate(time.Second).UnixMicro() + n*1e6)
			at := begin.Truncate(time.Second).Add(time.Duration(n) * time.Second)
			texts = []string{fmt.Sprint(at.Unix()), at.Format(time.RFC3339), at.String()}
		case weir.HoldID:
			id := weir.HoldID{byte(n)}
			to.Set(reflect.ValueOf(id))
			texts = []string{id.String()}
		case engine.Reason, []engine.Result:
			texts = nil // there is one; what it says is seen in other fields
		case rule.Priority:
			to.Set(reflect.ValueOf(rule.Low))
			texts = []string{"low", "PRIORITY_LOW"}
		case *rule.Entry:
			texts = []string{"api"}
		case *weir.Compiled:
			texts = []string{"100/1m"}
		case *engine.Override:
			to.Set(reflect.ValueOf(&engine.Override{ID: "ov7", Ends: begin}))
			texts = []string{"ov7"}
		default:
			switch to.Kind() {
			case reflect.Int64, reflect.Int:
				to.SetInt(n)
			case reflect.String:
				to.SetString(fmt.Sprint("user:", n))
				texts = []string{to.String()}
			default:
				panic(fmt.Sprintf("%s%s: say how to fill a %s", path, field.Name, field.Type))
			}
		}
		f.texts[path+field.Name] = texts
	}
}

// told is how an answer calls the fields of the engine, where it does not call them as they are,
// in lower case with underscores. The numbers of a verdict are those of a result.
var told = map[string]string{
	"Verdict.HoldExpires": "hold_expires_at",
	"Result.Compiled":     "policy", "Result.ResetAfter": "reset_after_ms", "Result.RetryAfter": "retry_after_ms", "Result.Delay": "delay_ms",
	"Verdict.Delay": "delay_ms", "Verdict.RetryAfter": "retry_after_ms",
}

// leftOut is what a protocol does not tell, on purpose. Those of "all" tell it nowhere.
var leftOut = map[string]map[string]string{
	"all": {
		"Result.Look":    "how the engine asked; the numbers say what came of it",
		"Result.Demand":  "an index of the call, which has one answer for each anyway",
		"Result.Receipt": "for the engine, which refunds by it",
		"Result.AtShare": "the message of the denial says so",
	},
	"Go client": {"Verdict.Hold": "it is the Hold that Reserve returns", "Verdict.HoldExpires": "likewise"},
	"Envoy": {
		"Verdict.Reason": "Envoy knows OK and OVER_LIMIT", "Verdict.Delay": "Envoy cannot delay", "Verdict.Hold": "Envoy settles nothing",
		"Verdict.HoldExpires": "likewise", "Verdict.Unheld": "likewise", "Verdict.RetryAfter": "each status has its own", "Verdict.Priority": "descriptors have none",
		"Verdict.Version": "the limits are of Envoy's configuration", "Result.Rule": "it is the descriptor, which Envoy has sent",
		"Result.Compiled": "current_limit is as the configuration has it", "Result.Key": "it is made of the descriptor", "Verdict.Level": "there is none", "Result.Level": "there is none", "Result.Cost": "Envoy has sent it",
		"Result.Leave": "descriptors have no priority", "Result.Shadow": "the configuration says so", "Result.Soft": "there is none",
		"Result.Penalty": "there is none", "Result.Override": "there is none", "Result.Asked": "what is unknown is absent",
		"Result.Local": "the metadata say that it is degraded", "Result.Limit": "current_limit is as the configuration has it",
		"Result.ResetAt": "Envoy has duration_until_reset", "Result.RetryAfter": "duration_until_reset is that of a denial",
		"Result.Delay": "Envoy cannot delay", "Result.Excess": "Envoy cannot be told",
		"Result.Reserved": "Envoy reserves nothing", "Result.Leased": "Envoy has no place for it",
	},
}

// called is the name of a field in an answer.
func called(field string) string {
	if name, ok := told[field]; ok {
		return name
	}
	_, name, _ := strings.Cut(field, ".")
	return strings.ToLower(regexp.MustCompile(`([a-z])([A-Z])`).ReplaceAllString(name, "${1}_${2}"))
}

// Every field of a verdict and of its results reaches the clients of every protocol, or is named
// above. A new field of the engine fails here until somebody has decided.
func TestEveryFieldIsTold(t *testing.T) {
	f := new(filler)
	e, err := engine.New(engine.Options{Observers: []engine.Observer{f}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	repository := openRules(t, "levels: [user]\nrules: [{id: api, key: levels, levels: {user: 100/1m}}]")
	current, err := repository.Current(t.Context())
	if err == nil {
		err = installer(e)(current)
	}
	if err != nil {
		t.Fatal(err)
	}
	service := manage.Service{Engine: e, Rules: repository}
	for _, denies := range []bool{false, true} {
		f.denies.Store(denies)
		for protocol, ask := range map[string]func(*testing.T, manage.Service) map[string]any{
			"HTTP": overHTTP, "gRPC": overGRPC, "RESP": overRESP, "Envoy": overEnvoy, "Go client": overClient,
		} {
			said := ask(t, service)
			for field, texts := range f.texts {
				if field == "Verdict.RetryAfter" && !denies {
					continue // an answer has it only then
				}
				reason := cmp.Or(leftOut[protocol][field], leftOut["all"][field])
				name, found := find(said, protocol, field, texts, denies)
				switch {
				case found && reason != "":
					t.Errorf("%s tells %s as %s, although it is left out: %s", protocol, field, name, reason)
				case !found && reason == "":
					t.Errorf("%s does not tell %s as %s with one of %v; denied %v, it says %v", protocol, field, name, texts, denies, said)
				}
			}
		}
	}
	for name, wire := range overHTTPNames(t, service) {
		for _, sdk := range []string{"typescript/src/api.ts", "python/weir/_api.py"} {
			source, err := os.ReadFile("../../../sdk/" + sdk)
			if err != nil {
				t.Fatal(err)
			}
			if !regexp.MustCompile(`(?m)^\s+"?` + wire + `"?: [({]`).Match(source) {
				t.Errorf("sdk/%s does not read %s, which HTTP sends for %s", sdk, wire, name)
			}
		}
	}
}

// find looks for a field in an answer, whose results are under the name result.
func find(said map[string]any, protocol, field string, texts []string, denies bool) (name string, found bool) {
	name = called(field)
	if protocol == "Envoy" {
		switch field {
		case "Verdict.Allowed":
			name, texts = "overall_code", []string{map[bool]string{false: "OK", true: "OVER_LIMIT"}[denies]}
		case "Result.Allowed":
			name, texts = "code", []string{map[bool]string{false: "OK", true: "OVER_LIMIT"}[denies]}
		case "Result.Remaining":
			name = "limit_remaining"
			if denies {
				return name, true // 0, as in its model
			}
		case "Result.ResetAfter":
			name = "duration_until_reset"
			if n := new(time.Duration); len(texts) > 1 {
				*n, _ = time.ParseDuration(texts[1])
				texts = []string{(n.Truncate(time.Second) + time.Second).String()}
			}
		case "Verdict.Results":
			name = "statuses"
		}
	}
	if strings.HasPrefix(field, "Result.") {
		said, _ = said["result"].(map[string]any)
	}
	value, there := said[name]
	if !there {
		value, there = said[strings.TrimSuffix(name, "_ms")]
	}
	text := fmt.Sprint(value)
	if o, ok := value.(map[string]any); ok {
		text = fmt.Sprint(o["id"])
	}
	if d, err := time.ParseDuration(text); err == nil {
		text = d.String()
	}
	return name, there && (texts == nil || slices.Contains(texts, text))
}

// flat is an answer as JSON has it, with its first result.
func flat(t *testing.T, body []byte, results string) map[string]any {
	t.Helper()
	var all map[string]any
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.UseNumber()
	if err := d.Decode(&all); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if list, ok := all[results].([]any); ok && len(list) > 0 {
		all["result"] = list[0]
	}
	return all
}

func overHTTP(t *testing.T, s manage.Service) map[string]any {
	h, err := httpapi.New(httpapi.Options{Service: s})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("POST", "http://localhost/v1/check", strings.NewReader(`{"user": "alice"}`)))
	return flat(t, w.Body.Bytes(), "results")
}

// overHTTPNames are the fields that HTTP sends.
func overHTTPNames(t *testing.T, s manage.Service) map[string]string {
	names := map[string]string{}
	said := overHTTP(t, s)
	result, _ := said["result"].(map[string]any)
	delete(said, "result")
	for name := range said {
		names["Verdict."+name] = name
	}
	for name := range maps.Keys(result) {
		names["Result."+name] = name
	}
	return names
}

// served is a server of gRPC on TCP.
func served(t *testing.T, register func(*grpc.Server)) string {
	t.Helper()
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	register(server)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listen) }()
	t.Cleanup(func() {
		server.Stop()
		<-done
	})
	return listen.Addr().String()
}

func message(t *testing.T, m proto.Message, results string) map[string]any {
	t.Helper()
	body, err := protojson.MarshalOptions{UseProtoNames: true, EmitUnpopulated: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return flat(t, body, results)
}

func overGRPC(t *testing.T, s manage.Service) map[string]any {
	api, err := New(Options{Service: s})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := limiter{s: api}.Check(t.Context(), &pb.CheckRequest{User: "alice"})
	if err != nil {
		t.Fatal(err)
	}
	return message(t, answer, "results")
}

func overRESP(t *testing.T, s manage.Service) map[string]any {
	api, err := respapi.New(respapi.Options{Service: s})
	if err != nil {
		t.Fatal(err)
	}
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- api.Serve(listen) }()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{listen.Addr().String()}, DisableCache: true, DisableRetry: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		c.Close()
		if err := errors.Join(api.Shutdown(t.Context()), <-done); err != nil {
			t.Error(err)
		}
	}()
	answer, err := c.Do(t.Context(), c.B().Arbitrary("WEIR.CHECK").Args("user", "alice", "results", "1").Build()).ToAny()
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	return flat(t, body, "results")
}

func overEnvoy(t *testing.T, s manage.Service) map[string]any {
	source := []byte("domain: d\ndescriptors: [{key: a, rate_limit: {unit: minute, requests_per_unit: 100}}]\n")
	config, problems := envoyconfig.Read([]envoyconfig.File{{Name: "d.yaml", Source: source}}, envoyconfig.Options{})
	if config == nil {
		t.Fatal(problems)
	}
	api, err := envoyrls.New(envoyrls.Options{Engine: s.Engine, DynamicMetadata: true, Config: func() *envoyconfig.Config { return config }})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := api.ShouldRateLimit(t.Context(), &rls.RateLimitRequest{
		Domain: "d", Descriptors: []*common.RateLimitDescriptor{{Entries: []*common.RateLimitDescriptor_Entry{{Key: "a", Value: "b"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	said := message(t, answer, "statuses")
	said["degraded"] = said["dynamic_metadata"].(map[string]any)["degraded"]
	return said
}

func overClient(t *testing.T, s manage.Service) map[string]any {
	api, err := New(Options{Service: s})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Options{Address: served(t, func(g *grpc.Server) { api.Register(g) }), Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	v, err := c.Check(t.Context(), &client.Request{User: "alice"})
	if err != nil || v.Err != nil {
		t.Fatal(err, v)
	}
	said := fieldsOf(reflect.ValueOf(*v))
	said["result"] = fieldsOf(reflect.ValueOf(v.Results[0]))
	return said
}

// fieldsOf are the fields of a struct, by their names in JSON.
func fieldsOf(s reflect.Value) map[string]any {
	all := map[string]any{}
	for i := range s.NumField() {
		value := s.Field(i).Interface()
		if o, ok := value.(*client.Override); ok && o != nil {
			value = o.ID
		}
		all[called("."+s.Type().Field(i).Name)] = value
	}
	return all
}

// Every reason of the engine has one in the protocol, and one in the client.
func TestReasons(t *testing.T) {
	last := engine.UnknownClient
	for r := range last + 1 {
		if got, want := reasons[r].String(), "REASON_"+strings.ToUpper(r.String()); got != want {
			t.Errorf("%s is %s, want %s", r, got, want)
		}
		if got := client.Reason(r).String(); got != r.String() {
			t.Errorf("the client says %s for %s", got, r)
		}
	}
	defer func() {
		if recover() == nil {
			t.Errorf("the engine has another reason, %s; this test has to know it", last+1)
		}
	}()
	_ = (last + 1).String()
}
