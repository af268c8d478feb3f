package sdk

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the types of the clients again")

// The types of the clients are those of the OpenAPI file.
func TestTypes(t *testing.T) {
	all := readSchemas(t)
	for file, want := range map[string]string{
		"../../sdk/typescript/src/api.ts": typescript(all),
		"../../sdk/python/weir/_api.py":   python(all),
	} {
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s is out of date (%v); run go test ./test/sdk -update", file, err)
		}
	}
}

const generated = "Generated from openapi.yaml; do not edit. To write it again: go test ./test/sdk -update"

// typescript has an interface for each schema, and for those that weir writes a table by which
// an answer is read.
func typescript(all []schema) string {
	var b strings.Builder
	fmt.Fprintf(&b, "// %s\n\nimport type { Fields } from './decode.js'\n", generated)
	types := [...]string{text: "string", boolean: "boolean", integer: "number", decimal: "number", instant: "Date", stringMap: "Record<string, string>", units: "number | Record<string, number>", texts: "string[]", decimals: "number[]"}
	kinds := [...]string{text: "string", boolean: "boolean", integer: "number", decimal: "decimal", instant: "time"}
	for _, s := range all {
		fmt.Fprintf(&b, "\n%sexport interface %s {\n", comment("", s.about), s.name)
		for _, f := range s.fields {
			mark, of := "", f.of
			switch {
			case f.kind < object:
				of = types[f.kind]
			case f.kind == objects:
				of += "[]"
			}
			if s.request && !f.required || !s.request && (f.kind == object || f.kind == instant) && !f.required {
				mark = "?"
				if s.request {
					of += " | undefined" // what a program does not know
				}
			}
			fmt.Fprintf(&b, "%s  %s%s: %s\n", comment("  ", f.about), camel(f.wire), mark, of)
		}
		b.WriteString("}\n")
		if s.request {
			continue
		}
		fmt.Fprintf(&b, "\nexport const %sFields: Fields = {\n", lower(s.name))
		for _, f := range s.fields {
			of := ""
			switch f.kind {
			case object:
				of = lower(f.of) + "Fields"
			case objects:
				of = "[" + lower(f.of) + "Fields]"
			default:
				of = "'" + kinds[f.kind] + "'"
			}
			fmt.Fprintf(&b, "  %s: { name: '%s', of: %s, required: %t },\n", f.wire, camel(f.wire), of, f.required && !f.null)
		}
		b.WriteString("}\n")
	}
	return b.String()
}

// python has a dataclass for each schema, with its table. Times are in seconds there.
func python(all []schema) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\nfrom __future__ import annotations\n\n", generated)
	b.WriteString("from dataclasses import dataclass, field\nfrom datetime import datetime\nfrom typing import Any, ClassVar, Dict, List, Mapping, Optional, Tuple, Union\n")
	types := [...]string{text: `str = ""`, boolean: "bool = False", integer: "int = 0", decimal: "float = 0.0", instant: "Optional[datetime] = None",
		texts: "List[str] = field(default_factory=list)", decimals: "List[float] = field(default_factory=list)",
		stringMap: "Mapping[str, str] = field(default_factory=dict)", units: "Union[int, Mapping[str, int]] = 0"}
	kinds := [...]string{text: `"string"`, boolean: `"boolean"`, integer: `"number"`, decimal: `"decimal"`, instant: `"time"`}
	for _, s := range all {
		fmt.Fprintf(&b, "\n\n@dataclass\nclass %s:\n", strings.TrimPrefix(s.name, "Check"))
		if s.about != "" {
			fmt.Fprintf(&b, "    \"\"\"%s\"\"\"\n\n", s.about)
		}
		var table []string
		for _, f := range s.fields {
			name, of, read := f.wire, "", ""
			switch {
			case f.kind == object && f.required:
				of, read = f.of+" = field(default_factory="+f.of+")", f.of
			case f.kind == object:
				of, read = "Optional["+f.of+"] = None", f.of
			case f.kind == objects:
				of, read = "List["+f.of+"] = field(default_factory=list)", "["+f.of+"]"
			case s.request && f.kind == decimal && !f.required:
				of = "Optional[float] = None"
			case s.request:
				of = types[f.kind]
			case strings.HasSuffix(f.wire, "_ms"):
				name, of, read = strings.TrimSuffix(f.wire, "_ms"), "float = 0.0", `"milliseconds"`
			default:
				of, read = types[f.kind], kinds[f.kind]
			}
			about := f.about
			if name != f.wire {
				about = strings.TrimSuffix("in seconds; "+about, "; ")
			}
			if about != "" {
				about = "  # " + about
			}
			fmt.Fprintf(&b, "    %s: %s%s\n", name, of, about)
			required := "False"
			if f.required && !f.null {
				required = "True"
			}
			table = append(table, fmt.Sprintf("        %q: (%q, %s, %s),\n", f.wire, name, read, required))
		}
		if !s.request {
			fmt.Fprintf(&b, "\n    FIELDS: ClassVar[Dict[str, Tuple[str, Any, bool]]] = {\n%s    }\n", strings.Join(table, ""))
		}
	}
	return b.String()
}

func comment(indent, about string) string {
	if about == "" {
		return ""
	}
	return indent + "/** " + about + " */\n"
}

func camel(name string) string {
	words := strings.Split(name, "_")
	for i, w := range words[1:] {
		words[i+1] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, "")
}

func lower(name string) string { return strings.ToLower(name[:1]) + name[1:] }
