package grpcapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	filerepo "github.com/weirhq/weir/internal/rules/repo/file"
	"github.com/weirhq/weir/internal/trust"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
	"google.golang.org/grpc/codes"
)

var update = flag.Bool("update", false, "write the answers in docs/reference/grpc.md again")

const docs = "../../../docs/reference/grpc.md"

// An example is a call, and what it answers.
var (
	example  = regexp.MustCompile("(?s)```sh\n(grpcurl [^\n]*)\n```\n\n```(json|text)\n(.*?)```\n")
	document = regexp.MustCompile("(?s)```yaml\n(rules:.*?)```\n")
	written  = regexp.MustCompile(`"time": "[^"]*"`)
)

func TestDocs(t *testing.T) {
	doc, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, document.FindSubmatch(doc)[1], 0o600); err != nil {
		t.Fatal(err)
	}
	repository, err := filerepo.Open(path, filerepo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := newPipe(t, Options{Service: manage.Service{Rules: repository}})
	examples := 0
	now := example.ReplaceAllStringFunc(string(doc), func(block string) string {
		examples++
		part := example.FindStringSubmatch(block)
		got := s.grpcurl(t, part[1])
		if got != part[3] && !*update {
			t.Errorf("%s\nanswers\n%s\nrun go test ./internal/server/grpcapi -update, if that is right", part[1], got)
		}
		return fmt.Sprintf("```sh\n%s\n```\n\n```%s\n%s```\n", part[1], part[2], got)
	})
	if calls := strings.Count(string(doc), "```sh\n"); examples != calls || calls < 6 {
		t.Errorf("%d of %d examples were run", examples, calls)
	}
	if *update && now != string(doc) {
		if err := os.WriteFile(docs, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// word is one of a shell's words.
var word = regexp.MustCompile(`'([^']*)'|(\S+)`)

// grpcurl does what grpcurl would, as far as the examples need it.
func (s *stand) grpcurl(t *testing.T, line string) string {
	t.Helper()
	var rest []string
	ctx, body := t.Context(), "{}"
	words := word.FindAllStringSubmatch(line, -1)[1:]
	for len(words) > 0 {
		w := words[0][1] + words[0][2]
		words = words[1:]
		switch w {
		case "-plaintext":
		case "-d":
			body, words = words[0][1]+words[0][2], words[1:]
		case "-H":
			name, value, _ := strings.Cut(words[0][1]+words[0][2], ": ")
			ctx, words = metadata.AppendToOutgoingContext(ctx, name, value), words[1:]
		default:
			rest = append(rest, w)
		}
	}
	if len(rest) != 2 || rest[0] != "127.0.0.1:8081" {
		t.Fatalf("%s: what are %v?", line, rest)
	}
	if rest[1] == "list" {
		return strings.Join(s.described(t), "\n") + "\n"
	}
	service, name, _ := strings.Cut(rest[1], "/")
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service + "." + name))
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	method := found.(protoreflect.MethodDescriptor)
	req, answer := dynamicpb.NewMessage(method.Input()), dynamicpb.NewMessage(method.Output())
	if err := protojson.Unmarshal([]byte(body), req); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	if err := s.conn.Invoke(ctx, "/"+rest[1], req, answer); err != nil {
		return fmt.Sprintf("ERROR:\n  Code: %s\n  Message: %s\n", status.Code(err), status.Convert(err).Message())
	}
	return pretty(t, answer)
}

func pretty(t *testing.T, m proto.Message) string {
	t.Helper()
	text, err := protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		t.Fatal(err)
	}
	return written.ReplaceAllString(b.String(), `"time": "`+begin.Truncate(time.Second).Format(time.RFC3339)+`"`) + "\n"
}

// The page lists every method and every reason, and none that is not there.
func TestDocsAreComplete(t *testing.T) {
	doc, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, d := range []grpc.ServiceDesc{pb.Limiter_ServiceDesc, pb.Rules_ServiceDesc, pb.Keys_ServiceDesc, pb.Clients_ServiceDesc, pb.Counters_ServiceDesc} {
		for _, m := range d.Methods {
			name, right := "/"+d.ServiceName+"/"+m.MethodName, trust.Read.String()
			switch call, counts := managedCalls[name], counterCalls[name]; {
			case call.call == nil && counts.call == nil:
				right = trust.Check.String()
				if m.MethodName == "Charge" {
					right = trust.Charge.String()
				}
			case d.ServiceName == pb.Clients_ServiceDesc.ServiceName:
				right = trust.Read.String() + ", " + trust.Look.String()
			case call.changes:
				right = trust.Admin.String()
			case counts.changes:
				right = trust.Use.String()
			}
			rows = append(rows, fmt.Sprintf("| `%s/%s` | %s | ", strings.TrimPrefix(d.ServiceName, "weir.v1."), m.MethodName, right))
		}
	}
	methods := len(rows)
	kinds := slices.DeleteFunc(slices.Clone(fault.Kinds()), func(k *fault.Kind) bool { return k.Code == codes.OK })
	for _, k := range kinds {
		rows = append(rows, fmt.Sprintf("| `%s` | `%s` | ", k.Reason, k.Code))
	}
	for _, row := range rows {
		if !strings.Contains(string(doc), "\n"+row) {
			t.Errorf("docs/reference/grpc.md lacks the line %s", row)
		}
	}
	if n := len(regexp.MustCompile("(?m)^\\| `(Limiter|Rules|Keys|Clients|Counters)/").FindAll(doc, -1)); n != methods {
		t.Errorf("docs/reference/grpc.md lists %d methods, there are %d", n, methods)
	}
	if n := len(regexp.MustCompile("(?m)^\\| `[A-Z_]+` \\| `").FindAll(doc, -1)); n != len(kinds) {
		t.Errorf("docs/reference/grpc.md lists %d reasons, there are %d", n, len(kinds))
	}
	for _, bound := range []string{
		fmt.Sprintf("%d requests", MaxChecks), fmt.Sprintf("%d calls", maxConcurrent), fmt.Sprintf("%d streams", maxStreams),
	} {
		if !strings.Contains(string(doc), bound) {
			t.Errorf("docs/reference/grpc.md does not say %q", bound)
		}
	}
}
