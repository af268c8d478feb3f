package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// readJSON keeps numbers as they are written.
func readJSON(text []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err = decoder.Decode(&value); err == nil && decoder.More() {
		err = fmt.Errorf("there is more than one value")
	}
	return value, err
}

// keyword checks a value against one keyword of a JSON Schema.
type keyword func(c *schemaCheck, schema map[string]any, word, value any) error

// schemaCheck checks values against JSON Schemas (2020-12), as far as the description uses them. A keyword
// that is not here is an error, so that none goes unchecked.
type schemaCheck struct {
	at func(names ...string) any // what a reference names
}

var keywords map[string]keyword

func init() { // because keywords check schemas, which have keywords
	keywords = map[string]keyword{
		"$ref": func(c *schemaCheck, _ map[string]any, word, value any) error {
			return c.check(c.at(strings.Split(strings.TrimPrefix(word.(string), "#/"), "/")...), value)
		},
		"type": func(_ *schemaCheck, _ map[string]any, word, value any) error {
			for _, name := range listOf(word) {
				if isType(name.(string), value) {
					return nil
				}
			}
			return fmt.Errorf("want %v", word)
		},
		"enum": func(_ *schemaCheck, _ map[string]any, word, value any) error {
			return must(slices.ContainsFunc(word.([]any), func(one any) bool { return isEqual(one, value) }), "want one of %v", word)
		},
		"const": func(_ *schemaCheck, _ map[string]any, word, value any) error {
			return must(isEqual(word, value), "want %v", word)
		},
		"anyOf": func(c *schemaCheck, _ map[string]any, word, value any) error {
			return must(c.count(word, value) > 0, "it is none of %d", len(word.([]any)))
		},
		"oneOf": func(c *schemaCheck, _ map[string]any, word, value any) error {
			return must(c.count(word, value) == 1, "it is not one of %d", len(word.([]any)))
		},

		"minimum":          ofNumber(func(order int) bool { return order >= 0 }),
		"maximum":          ofNumber(func(order int) bool { return order <= 0 }),
		"exclusiveMinimum": ofNumber(func(order int) bool { return order > 0 }),
		"minLength":        ofSize(func(text string) int { return utf8.RuneCountInString(text) }, false),
		"maxLength":        ofSize(func(text string) int { return utf8.RuneCountInString(text) }, true),
		"minItems":         ofSize(func(list []any) int { return len(list) }, false),
		"maxItems":         ofSize(func(list []any) int { return len(list) }, true),
		"maxProperties":    ofSize(func(members map[string]any) int { return len(members) }, true),

		"pattern": of(func(_ *schemaCheck, _ map[string]any, word any, text string) error {
			return must(regexp.MustCompile(word.(string)).MatchString(text), "want %v", word)
		}),
		"format": of(func(_ *schemaCheck, _ map[string]any, word any, text string) error {
			if word == "password" {
				return nil // which says how to show it
			}
			_, err := time.Parse(time.RFC3339, text)
			return must(word == "date-time" && err == nil, "want a %v", word)
		}),

		"items": of(func(c *schemaCheck, _ map[string]any, word any, list []any) error {
			for i, item := range list {
				if err := c.check(word, item); err != nil {
					return fmt.Errorf("%d: %w", i, err)
				}
			}
			return nil
		}),
		"properties": of(func(c *schemaCheck, _ map[string]any, word any, members map[string]any) error {
			for name, value := range members {
				if known, ok := word.(map[string]any)[name]; ok {
					if err := c.check(known, value); err != nil {
						return fmt.Errorf("%s: %w", name, err)
					}
				}
			}
			return nil
		}),
		"additionalProperties": of(func(c *schemaCheck, schema map[string]any, word any, members map[string]any) error {
			known, _ := schema["properties"].(map[string]any)
			for name, value := range members {
				if _, ok := known[name]; ok {
					continue
				}
				if err := c.check(word, value); err != nil {
					return fmt.Errorf("%s, which is not in properties: %w", name, err)
				}
			}
			return nil
		}),
		"propertyNames": of(func(c *schemaCheck, _ map[string]any, word any, members map[string]any) error {
			for name := range members {
				if err := c.check(word, name); err != nil {
					return fmt.Errorf("the name %q: %w", name, err)
				}
			}
			return nil
		}),
		"required": of(func(_ *schemaCheck, _ map[string]any, word any, members map[string]any) error {
			for _, name := range word.([]any) {
				if _, ok := members[name.(string)]; !ok {
					return fmt.Errorf("%v is missing", name)
				}
			}
			return nil
		}),
		"dependentRequired": of(func(c *schemaCheck, schema map[string]any, word any, members map[string]any) error {
			for name, others := range word.(map[string]any) {
				if _, ok := members[name]; ok {
					if err := keywords["required"](c, schema, others, members); err != nil {
						return fmt.Errorf("with %s: %w", name, err)
					}
				}
			}
			return nil
		}),
	}
	for _, name := range []string{"description", "default", "example", "contentEncoding"} {
		keywords[name] = func(*schemaCheck, map[string]any, any, any) error { return nil }
	}
}

// check returns what is wrong with a value.
func (c *schemaCheck) check(schema, value any) error {
	if allowed, ok := schema.(bool); ok {
		return must(allowed, "it is not allowed")
	}
	words, ok := schema.(map[string]any)
	if !ok {
		return fmt.Errorf("%v is no schema", schema)
	}
	for name, word := range words {
		check, ok := keywords[name]
		if !ok {
			return fmt.Errorf("the keyword %s is not known here; add it to keywords", name)
		}
		if err := check(c, words, word, value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// count is how many of some schemas a value has.
func (c *schemaCheck) count(schemas, value any) (n int) {
	for _, schema := range schemas.([]any) {
		if c.check(schema, value) == nil {
			n++
		}
	}
	return n
}

func must(is bool, format string, args ...any) error {
	if is {
		return nil
	}
	return fmt.Errorf(format, args...)
}

func listOf(word any) []any {
	if list, ok := word.([]any); ok {
		return list
	}
	return []any{word}
}

// of makes a keyword of a check of values of one type: others have it in any case.
func of[T any](check func(c *schemaCheck, schema map[string]any, word any, value T) error) keyword {
	return func(c *schemaCheck, schema map[string]any, word, value any) error {
		if value, ok := value.(T); ok {
			return check(c, schema, word, value)
		}
		return nil
	}
}

func ofNumber(is func(order int) bool) keyword {
	return of(func(_ *schemaCheck, _ map[string]any, word any, n json.Number) error {
		return must(is(number(n).Cmp(number(word.(json.Number)))), "it is %v, and the bound is %v", n, word)
	})
}

func ofSize[T any](size func(T) int, most bool) keyword {
	return of(func(_ *schemaCheck, _ map[string]any, word any, value T) error {
		order := big.NewRat(int64(size(value)), 1).Cmp(number(word.(json.Number)))
		return must(order == 0 || (order < 0) == most, "it has %d, and the bound is %v", size(value), word)
	})
}

func number(n json.Number) *big.Rat {
	r, _ := new(big.Rat).SetString(n.String())
	return r
}

func isEqual(a, b any) bool {
	n, one := a.(json.Number)
	m, other := b.(json.Number)
	if one && other {
		return number(n).Cmp(number(m)) == 0
	}
	return reflect.DeepEqual(a, b)
}

func isType(name string, value any) (is bool) {
	switch name {
	case "null":
		is = value == nil
	case "boolean":
		_, is = value.(bool)
	case "string":
		_, is = value.(string)
	case "array":
		_, is = value.([]any)
	case "object":
		_, is = value.(map[string]any)
	case "number", "integer":
		var n json.Number
		n, is = value.(json.Number)
		is = is && (name == "number" || number(n).IsInt())
	}
	return is
}

// Each keyword finds what it is for.
func TestSchemaCheck(t *testing.T) {
	c := &schemaCheck{at: func(...string) any { return map[string]any{"type": "null"} }}
	tried := map[string]bool{}
	for _, s := range []struct{ schema, good, bad string }{
		{`{"$ref": "#/x"}`, `null`, `1`},
		{`{"type": "integer"}`, `3.0`, `3.5`}, {`{"type": ["string", "null"]}`, `null`, `{}`}, {`{"type": "number"}`, `3.5`, `"3.5"`},
		{`{"type": "boolean"}`, `false`, `0`}, {`{"type": "array"}`, `[]`, `{}`}, {`{"type": "object"}`, `{}`, `[]`},
		{`{"enum": ["a", 1]}`, `1.0`, `"b"`}, {`{"const": {"a": [1]}}`, `{"a": [1]}`, `{"a": [2]}`},
		{`{"anyOf": [{"minimum": 3}, {"maximum": 1}]}`, `1`, `2`}, {`{"oneOf": [{"minimum": 1}, {"maximum": 3}]}`, `4`, `2`},
		{`{"minimum": 3}`, `3`, `2.9`}, {`{"maximum": 3}`, `3`, `3.1`}, {`{"exclusiveMinimum": 3}`, `3.1`, `3`},
		{`{"minLength": 2}`, `"éé"`, `"é"`}, {`{"maxLength": 2}`, `"éé"`, `"ééé"`},
		{`{"minItems": 1}`, `[1]`, `[]`}, {`{"maxItems": 1}`, `[1]`, `[1, 2]`}, {`{"maxProperties": 1}`, `{"a": 1}`, `{"a": 1, "b": 2}`},
		{`{"pattern": "^a"}`, `"ab"`, `"ba"`}, {`{"format": "date-time"}`, `"2025-08-29T12:00:00Z"`, `"2025-08-29"`}, {`{"format": "password"}`, `"x"`, ``},
		{`{"items": {"type": "null"}}`, `[null]`, `[null, 1]`}, {`{"properties": {"a": {"type": "null"}}}`, `{"b": 1}`, `{"a": 1}`},
		{`{"properties": {"a": true}, "additionalProperties": false}`, `{"a": 1}`, `{"b": 1}`}, {`{"additionalProperties": {"minimum": 2}}`, `{"b": 2}`, `{"b": 1}`},
		{`{"propertyNames": {"maxLength": 1}}`, `{"a": 1}`, `{"ab": 1}`}, {`{"required": ["a"]}`, `{"a": null}`, `{"b": 1}`},
		{`{"dependentRequired": {"a": ["b"]}}`, `{"b": 1}`, `{"a": 1}`},
		{`{"description": "x", "default": 1, "example": 1, "contentEncoding": "x"}`, `1`, ``}, {`{"unknown": 1}`, ``, `1`},
	} {
		schema, err := readJSON([]byte(s.schema))
		if err != nil {
			t.Fatal(err)
		}
		for name := range schema.(map[string]any) {
			tried[name] = true
		}
		for i, text := range []string{s.good, s.bad} {
			if text == "" {
				continue
			}
			value, err := readJSON([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if err := c.check(schema, value); (err == nil) != (i == 0) {
				t.Errorf("%s of %s: %v", s.schema, text, err)
			}
		}
	}
	for name := range keywords {
		if !tried[name] {
			t.Errorf("%s is not tried", name)
		}
	}
}
