package lint

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weirhq/weir/rule"
	weirv1 "github.com/weirhq/weir/sdk/proto/weir/v1"
)

// ruleSurface lists the fields of a rules document; their types are in the schema Rule of the HTTP API.
func ruleSurface(t *testing.T) (lines []string) {
	for _, of := range []string{"document", "rule", "match", "shares", "cost", "count", "tokens", "penalty", "wait", "weights", "deny", "quota", "list"} {
		fields := rule.FieldNames(of)
		if len(fields) == 0 {
			t.Errorf("there are no fields of %s", of)
		}
		for _, field := range fields {
			lines = append(lines, of+"."+field)
		}
	}
	return lines
}

var metricHeading = regexp.MustCompile("(?m)^### `(weir_[a-z_]+)(?:\\{([a-z_,]+)\\})?`$")

// metricSurface lists the headings of the reference, which a test of deploy compares with what weir exposes.
func metricSurface(t *testing.T) (lines []string) {
	page, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range metricHeading.FindAllStringSubmatch(string(page), -1) {
		lines = append(lines, m[1])
		for label := range strings.SplitSeq(m[2], ",") {
			if label != "" {
				lines = append(lines, m[1]+": by "+label)
			}
		}
	}
	return lines
}

var manualFlag = regexp.MustCompile(`(?m)^(?:\\fB-\w\\fP, )?\\fB--([a-z0-9-]+)\\fP(.*)$`)

// flagSurface lists the commands and their flags with the default values, as the manual pages have them.
func flagSurface(t *testing.T) (lines []string) {
	dir := t.TempDir()
	program := filepath.Join(dir, "weir")
	for _, cmd := range []*exec.Cmd{goCommand(t, "build", "-o", program, "./cmd/weir"), exec.CommandContext(t.Context(), program, "man", filepath.Join(dir, "man"))} {
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s: %v", cmd, err)
		}
	}
	pages, err := filepath.Glob(filepath.Join(dir, "man", "*.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range pages {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		command := strings.ReplaceAll(strings.TrimSuffix(filepath.Base(name), ".1"), "-", " ")
		lines = append(lines, command+": command")
		for _, m := range manualFlag.FindAllStringSubmatch(string(page), -1) {
			lines = append(lines, fmt.Sprintf("%s --%s: %s", command, m[1], m[2]))
		}
	}
	return lines
}

// grpcSurface lists services, messages and enumerations.
func grpcSurface(*testing.T) (lines []string) {
	file := weirv1.File_weir_v1_weir_proto
	for i := range file.Services().Len() {
		service := file.Services().Get(i)
		for j := range service.Methods().Len() {
			m := service.Methods().Get(j)
			stream := map[bool]string{true: "stream "}
			lines = append(lines, fmt.Sprintf("%s.%s: (%s%s) %s%s", service.Name(), m.Name(),
				stream[m.IsStreamingClient()], m.Input().Name(), stream[m.IsStreamingServer()], m.Output().Name()))
		}
	}
	return append(append(lines, messageLines(file.Messages())...), enumLines(file.Enums())...)
}

func messageLines(messages protoreflect.MessageDescriptors) (lines []string) {
	for i := range messages.Len() {
		m := messages.Get(i)
		name := strings.TrimPrefix(string(m.FullName()), "weir.v1.")
		lines = append(lines, name+": message")
		for j := range m.Fields().Len() {
			f := m.Fields().Get(j)
			kind := f.Kind().String()
			if f.Message() != nil {
				kind = string(f.Message().FullName())
			} else if f.Enum() != nil {
				kind = string(f.Enum().FullName())
			}
			if one := f.ContainingOneof(); one != nil {
				kind += " of " + string(one.Name())
			}
			lines = append(lines, fmt.Sprintf("%s.%s: %d %s %s", name, f.Name(), f.Number(), f.Cardinality(), kind))
		}
		lines = append(append(lines, messageLines(m.Messages())...), enumLines(m.Enums())...)
	}
	return lines
}

func enumLines(enums protoreflect.EnumDescriptors) (lines []string) {
	for i := range enums.Len() {
		e := enums.Get(i)
		for j := range e.Values().Len() {
			v := e.Values().Get(j)
			lines = append(lines, fmt.Sprintf("%s.%s: %d", strings.TrimPrefix(string(e.FullName()), "weir.v1."), v.Name(), v.Number()))
		}
	}
	return lines
}

// openAPI is a description, as a tree.
type openAPI struct {
	root  map[string]any
	asked map[string]bool // schemas that requests have
}

// httpSurface lists operations with their parameters, bodies and answers, and the schemas that these use, whose
// names are also those of types in the clients for TypeScript and Python.
func httpSurface(t *testing.T) (lines []string) {
	source, err := os.ReadFile("../../internal/server/httpapi/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	api := openAPI{asked: map[string]bool{}}
	if err := yaml.Unmarshal(source, &api.root); err != nil {
		t.Fatal(err)
	}
	for path, item := range api.root["paths"].(map[string]any) {
		for method, operation := range item.(map[string]any) {
			if slices.Contains([]string{"get", "head", "post", "put", "patch", "delete"}, method) {
				lines = append(lines, api.operation(strings.ToUpper(method)+" "+path, item.(map[string]any), operation.(map[string]any))...)
			}
		}
	}
	for name, response := range api.at("components", "responses") {
		lines = append(lines, api.response("response "+name+": has", response.(map[string]any))...)
	}
	for name, schema := range api.at("components", "schemas") {
		lines = append(lines, name+": schema")
		lines = append(lines, api.schema(name, name, schema.(map[string]any))...)
	}
	return lines
}

func (a *openAPI) at(names ...string) map[string]any {
	node := a.root
	for _, name := range names {
		node = node[name].(map[string]any)
	}
	return node
}

// follow returns what a reference is to.
func (a *openAPI) follow(node any) map[string]any {
	m := node.(map[string]any)
	if ref, ok := m["$ref"].(string); ok {
		return a.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	return m
}

func (a *openAPI) operation(name string, item, operation map[string]any) (lines []string) {
	var required []string
	for _, list := range []any{item["parameters"], operation["parameters"]} {
		all, _ := list.([]any)
		for _, p := range all {
			p := a.follow(p)
			lines = append(lines, fmt.Sprintf("%s: %s %s %s", name, p["in"], p["name"], a.kind(p["schema"])))
			if p["required"] == true {
				required = append(required, fmt.Sprint(p["name"]))
			}
		}
	}
	slices.Sort(required)
	if body := operation["requestBody"]; body != nil {
		for media, content := range a.follow(body)["content"].(map[string]any) {
			schema := content.(map[string]any)["schema"]
			a.ask(schema)
			lines = append(lines, fmt.Sprintf("%s: body %s %s", name, media, a.kind(schema)))
		}
	}
	for status, answer := range operation["responses"].(map[string]any) {
		answer := answer.(map[string]any)
		if ref, ok := answer["$ref"].(string); ok {
			lines = append(lines, fmt.Sprintf("%s: %s response %s", name, status, filepath.Base(ref)))
			continue
		}
		lines = append(lines, a.response(name+": "+status, answer)...)
	}
	// One more that is required breaks who calls it, so this is one line.
	return append(lines, fmt.Sprintf("%s: requires %s", name, strings.Join(required, ", ")))
}

// response lists the bodies and header fields of an answer.
func (a *openAPI) response(name string, answer map[string]any) []string {
	lines := []string{name}
	content, _ := answer["content"].(map[string]any)
	for media, c := range content {
		lines = append(lines, fmt.Sprintf("%s %s %s", name, media, a.kind(c.(map[string]any)["schema"])))
	}
	headers, _ := answer["headers"].(map[string]any)
	for header := range headers {
		lines = append(lines, name+" with "+header)
	}
	return lines
}

// ask notes the schemas of a request.
func (a *openAPI) ask(node any) {
	switch node := node.(type) {
	case map[string]any:
		if ref, ok := node["$ref"].(string); ok {
			if name := filepath.Base(ref); !a.asked[name] {
				a.asked[name] = true
				a.ask(a.at("components", "schemas")[name])
			}
		}
		for _, part := range node {
			a.ask(part)
		}
	case []any:
		for _, part := range node {
			a.ask(part)
		}
	}
}

// kind is what a schema accepts, in short.
func (a *openAPI) kind(node any) string {
	schema, _ := node.(map[string]any)
	if ref, ok := schema["$ref"].(string); ok {
		return filepath.Base(ref)
	}
	for _, several := range []string{"oneOf", "anyOf", "allOf"} {
		if list, ok := schema[several].([]any); ok {
			var kinds []string
			for _, one := range list {
				kinds = append(kinds, a.kind(one))
			}
			return several + "(" + strings.Join(kinds, ", ") + ")"
		}
	}
	if items, ok := schema["items"]; ok {
		return "array of " + a.kind(items)
	}
	if more, ok := schema["additionalProperties"].(map[string]any); ok {
		return "map of " + a.kind(more)
	}
	if schema["type"] == nil && (schema["enum"] != nil || schema["const"] != nil) {
		return "word"
	}
	if schema["type"] == nil {
		return "anything"
	}
	if schema["format"] == nil {
		return fmt.Sprint(schema["type"])
	}
	return fmt.Sprint(schema["type"], " ", schema["format"])
}

// schema lists the fields and words of a schema. What a request requires is one line, because one more breaks those
// who send it; of what an answer always has, each field is one.
func (a *openAPI) schema(top, name string, schema map[string]any) (lines []string) {
	words, _ := schema["enum"].([]any)
	if schema["const"] != nil {
		words = append(words, schema["const"])
	}
	for _, word := range words {
		lines = append(lines, fmt.Sprintf("%s: may be %v", name, word))
	}
	required, _ := schema["required"].([]any)
	properties, _ := schema["properties"].(map[string]any)
	if a.asked[top] && properties != nil {
		var all []string
		for _, field := range required {
			all = append(all, fmt.Sprint(field))
		}
		slices.Sort(all)
		lines = append(lines, fmt.Sprintf("%s: requires %s", name, strings.Join(all, ", ")))
	} else if !a.asked[top] {
		for _, field := range required {
			lines = append(lines, fmt.Sprintf("%s.%s: always", name, field))
		}
	}
	for _, field := range slices.Sorted(maps.Keys(properties)) {
		property := properties[field].(map[string]any)
		lines = append(lines, fmt.Sprintf("%s.%s: %s", name, field, a.kind(property)))
		lines = append(lines, a.schema(top, name+"."+field, property)...)
	}
	for _, several := range []string{"oneOf", "anyOf", "allOf"} {
		list, _ := schema[several].([]any)
		for _, one := range list {
			lines = append(lines, a.schema(top, name, one.(map[string]any))...)
		}
	}
	for _, inner := range []string{"items", "additionalProperties"} {
		if one, ok := schema[inner].(map[string]any); ok {
			lines = append(lines, a.schema(top, name, one)...)
		}
	}
	return lines
}
