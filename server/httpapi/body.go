package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weirhq/weir/internal/suggest"
)

// body reads a body of at most so many bytes.
func (c *call) body(most int64) ([]byte, *Problem) {
	body, err := io.ReadAll(http.MaxBytesReader(c.ResponseWriter, c.r.Body, most))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, tooLarge.of("At most %d bytes are read; send less.", most)
	case err != nil:
		return nil, badBody.of("The body ended before it was complete; send it again.")
	}
	return body, nil
}

// decode reads one JSON object into a struct whose fields are known by these names,
// and nothing behind it. To be strict is kind: a field that is silently ignored is a
// limit that silently does not apply.
func decode(body []byte, into any, known []string) *Problem {
	if !utf8.Valid(body) {
		return badBody.of("The body is not UTF-8, which JSON has to be; send it so.")
	}
	content := bytes.TrimLeft(body, " \t\r\n")
	if len(content) == 0 {
		return badBody.of("The body is empty; send a JSON object, such as {%q: …}.", known[0])
	}
	if content[0] != '{' {
		return badBody.of("The body has to be a JSON object, such as {%q: …}.", known[0])
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return diagnose(body, err, known)
	}
	if rest := bytes.TrimLeft(body[d.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return badBody.of("The body goes on after the JSON object, at byte %d; send one object only.", len(body)-len(rest)+1)
	}
	return nil
}

// diagnose says what is wrong with a body that could not be decoded.
func diagnose(body []byte, err error, known []string) *Problem {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return badBody.of("The JSON ends too early; look at its brackets and quotes.")
	case errors.As(err, &syntax):
		return badBody.of("The body is not JSON at byte %d: %s; look at the commas, quotes and brackets before it.", syntax.Offset, syntax.Error())
	}
	var fields map[string]json.RawMessage
	if json.NewDecoder(bytes.NewReader(body)).Decode(&fields) == nil {
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if !slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) }) {
				return unknownName("field", name, known)
			}
		}
	}
	if errors.As(err, &kind) {
		field := kind.Field
		return badField.of("%s cannot be %s %s; send %s.", field, article(kind.Value), kind.Value, wanted(kind.Type.Kind().String())).in(field)
	}
	return badBody.of("The body cannot be read; look at docs/api.md for what it has to be.")
}

// unknownName is a field or parameter that nothing knows, with the one that was
// probably meant.
func unknownName(what, name string, known []string) *Problem {
	if near := suggest.Nearest(name, known); near != "" {
		return badField.of("There is no %s %q; did you mean %s?", what, clip(name), near).in(clip(name))
	}
	if len(known) == 0 {
		return badField.of("There is no %s %q; leave it out.", what, clip(name)).in(clip(name))
	}
	return badField.of("There is no %s %q; use %s.", what, clip(name), strings.Join(known, ", ")).in(clip(name))
}

func article(word string) string {
	if strings.ContainsAny(word[:min(1, len(word))], "aeiou") {
		return "an"
	}
	return "a"
}

// wanted says what JSON a Go kind is made of.
func wanted(kind string) string {
	switch kind {
	case "string":
		return "a string"
	case "bool":
		return "true or false"
	case "map", "struct":
		return "an object of strings"
	}
	return "a whole number"
}

// statusClientGone is what access logs call a client that did not wait for its
// answer. Nobody else sees it.
const statusClientGone = 499

// gone answers a call whose context ended before it was answered.
func (c *call) gone(err error) {
	if errors.Is(err, context.Canceled) {
		c.WriteHeader(statusClientGone)
		return
	}
	c.Header().Set("Retry-After", "1")
	c.refuse(busy.of("There was no time left to answer; try again."))
}
