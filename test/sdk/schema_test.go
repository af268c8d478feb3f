package sdk

import (
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// schema is an object of the OpenAPI file, as far as the clients need it.
type schema struct {
	wire, name, about string
	request           bool // what a program writes, and weir reads
	fields            []field
}

// field is one of its fields.
type field struct {
	wire, about    string
	kind           kind
	of             string // the name of the schema, of an object or objects
	required, null bool
}

type kind int

const (
	text kind = iota
	boolean
	integer
	decimal
	instant
	stringMap // an object of strings
	units     // a number, or an object of numbers by unit
	texts
	decimals
	object
	objects
)

// schemas are those that the clients use, by what they are called there. An object comes before
// those that contain it. One with a dot is an entry of a list.
var schemas = []schema{
	{wire: "CheckRequest", name: "CheckRequest", request: true},
	{wire: "Display", name: "Display"},
	{wire: "LimitAnswer", name: "Result"},
	{wire: "CheckAnswer", name: "Answer"},
	{wire: "HoldAnswer", name: "Settled"},
	{wire: "Problem", name: "Problem"},

	{wire: "CounterKey", name: "CounterKey", request: true},
	{wire: "AddRequest.add", name: "CounterDelta", request: true},
	{wire: "SetRequest.set", name: "CounterSetting", request: true},
	{wire: "ObserveRequest.observe", name: "Sample", request: true},
	{wire: "CountersAnswer", name: "CountersAnswer"},
	{wire: "SetAnswer", name: "SetAnswer"},
	{wire: "ObserveAnswer", name: "ObserveAnswer"},
	{wire: "Point", name: "CounterPoint"},
	{wire: "CounterHistoryAnswer", name: "CounterHistoryAnswer"},
	{wire: "Percentiles", name: "Percentiles"},
	{wire: "DistributionsAnswer", name: "DistributionsAnswer"},
}

// within are the names of objects that have none in the OpenAPI file.
var within = map[string]string{
	"LimitAnswer.override": "Override", "HoldAnswer.parts": "Part",
	"CountersAnswer.counters": "CounterValue", "SetAnswer.counters": "PreviousValue", "CounterHistoryAnswer.counters": "CounterHistory",
	"DistributionsAnswer.distributions": "Distribution",
}

// hidden are fields that methods stand for, or that the clients do not use.
var hidden = []string{"SetAnswer.counters.value", "CheckRequest.peek", "CheckRequest.charge", "Problem.problems", "Problem.params", "Problem.version"}

// readSchemas reads the OpenAPI file.
func readSchemas(t *testing.T) (all []schema) {
	t.Helper()
	source, err := os.ReadFile("../../internal/server/httpapi/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(source, &document); err != nil {
		t.Fatal(err)
	}
	r := reader{t: t, schemas: child(child(document.Content[0], "components"), "schemas")}
	for _, s := range schemas {
		name, list, isEntry := strings.Cut(s.wire, ".")
		from := child(r.schemas, name)
		if isEntry {
			from = child(child(child(from, "properties"), list), "items")
		}
		r.read(s, from)
	}
	return r.all
}

type reader struct {
	t       *testing.T
	schemas *yaml.Node
	all     []schema
}

func (r *reader) read(s schema, from *yaml.Node) {
	r.t.Helper()
	if from == nil {
		r.t.Fatalf("openapi.yaml has no %s", s.wire)
	}
	s.about = value(from, "description")
	var required []string
	if list := child(from, "required"); list != nil {
		for _, name := range list.Content {
			required = append(required, name.Value)
		}
	}
	var read func(*yaml.Node)
	read = func(properties *yaml.Node) {
		for i := 0; i < len(properties.Content); i += 2 {
			name, of := properties.Content[i].Value, resolve(properties.Content[i+1])
			switch {
			case name == "<<" && s.request:
				read(of)
			case name == "<<" || slices.Contains(hidden, s.wire+"."+name): // an answer repeats the key of the request
			default:
				f := r.field(s.wire+"."+name, of)
				f.wire, f.required = name, slices.Contains(required, name)
				s.fields = append(s.fields, f)
			}
		}
	}
	read(child(from, "properties"))
	r.all = append(r.all, s)
}

// field reads the type of a field.
func (r *reader) field(path string, n *yaml.Node) (f field) {
	r.t.Helper()
	ref := strings.TrimPrefix(value(n, "$ref"), "#/components/schemas/")
	if at := named(ref); at != "" {
		f.kind, f.of = object, at
		return f
	}
	about := value(n, "description")
	if ref != "" && ref != "Strings" && ref != "Cost" {
		n = child(r.schemas, ref)
		if about == "" && ref != "Amount" {
			about = value(n, "description")
		}
	}
	f.about = strings.Replace(about, "; null if", "; also 0 if", 1) // null is read as 0
	of := value(n, "type")
	if types := child(n, "type"); types != nil && types.Kind == yaml.SequenceNode {
		of, f.null = types.Content[0].Value, true
	}
	switch {
	case ref == "Strings":
		f.kind = stringMap
	case ref == "Cost":
		f.kind, f.about = units, value(child(r.schemas, "Cost"), "description")
	case child(n, "enum") != nil, of == "string" && value(n, "format") == "":
		f.kind = text
	case of == "string" && value(n, "format") == "date-time":
		f.kind = instant
	case of == "boolean":
		f.kind = boolean
	case of == "integer":
		f.kind = integer
	case of == "number":
		f.kind = decimal
	case of == "array" && value(child(n, "items"), "type") == "number":
		f.kind = decimals
	case of == "array" && strings.HasSuffix(value(child(n, "items"), "$ref"), "/CountName"):
		f.kind = texts
	case of == "object":
		f.kind, f.of = object, within[path]
		r.read(schema{wire: path, name: f.of}, n)
	case of == "array":
		f.kind, f.of = objects, within[path]
		if items := child(n, "items"); f.of != "" {
			r.read(schema{wire: path, name: f.of}, items)
		} else {
			f.of = named(strings.TrimPrefix(value(items, "$ref"), "#/components/schemas/"))
		}
	default:
		r.t.Fatalf("openapi.yaml: %s has a type that the generator does not know", path)
	}
	if f.of == "" && f.kind >= object {
		r.t.Fatalf("openapi.yaml: %s has no name in the clients", path)
	}
	return f
}

// named is what the clients call a schema; "" if they do not use it.
func named(wire string) string {
	if at := slices.IndexFunc(schemas, func(s schema) bool { return s.wire == wire }); at >= 0 {
		return schemas[at].name
	}
	return ""
}

// child is the value of a key in a mapping; nil if there is none.
func child(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return resolve(n.Content[i+1])
		}
	}
	return nil
}

func value(n *yaml.Node, key string) string {
	if v := child(n, key); v != nil {
		return v.Value
	}
	return ""
}

func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
