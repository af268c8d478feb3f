package expression

import (
	"errors"
	"net/http"
	"net/textproto"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
	"github.com/weirhq/weir/internal/match"
	"github.com/weirhq/weir/rule"
)

// input is what an expression reads, for one evaluation.
type input struct {
	req  *rule.Request
	resp *rule.Response

	requestJSON, responseJSON ref.Val  // nil until they are read
	body, answer              jsonText // of them
}

var _ interpreter.Activation = (*input)(nil)

func (in *input) Parent() cel.Activation { return nil }

// ResolveName returns the value of a variable.
func (in *input) ResolveName(name string) (any, bool) {
	if value := in.request(name); value != nil {
		return value, true
	}
	if _, known := responseVariables[name]; !known {
		return nil, false
	}
	if in.resp == nil { // not yet
		return types.NewUnknown(0, types.NewAttributeTrail(name)), true
	}
	return in.response(name), true
}

func (in *input) request(name string) any {
	req := in.req
	switch name {
	case "request.method":
		return types.String(strings.ToUpper(req.Method))
	case "request.host":
		return types.String(match.CanonicalHost(req.Host))
	case "request.path":
		return types.String(match.CanonicalPath(req.Path))
	case "request.user":
		user, _ := req.Client()
		return types.String(user)
	case "request.tier":
		_, tier := req.Client()
		return types.String(tier)
	case "request.ip":
		if !req.IP.IsValid() {
			return types.String("")
		}
		return types.String(req.IP.Unmap().WithZone("").String())
	case "request.size":
		if req.Size < 0 {
			return types.WrapErr(errSize)
		}
		return types.Int(req.Size)
	case "request.attributes":
		return textsOf(func(name string) string { return req.Attributes[name] })
	case "request.headers":
		return textsOf(in.header)
	case "request.query":
		return textsOf(func(name string) string {
			if req.Values == nil {
				return ""
			}
			return joined(req.Values.Query, name)
		})
	case "request.json":
		if in.requestJSON == nil {
			in.requestJSON = in.readBody()
		}
		return in.requestJSON
	}
	return nil
}

func (in *input) response(name string) any {
	resp := in.resp
	switch name {
	case "response.status":
		return types.Int(resp.Status)
	case "response.size":
		return types.Int(resp.Bytes)
	case "response.duration":
		return types.Duration{Duration: resp.Duration}
	case "response.headers":
		return textsOf(func(name string) string {
			if resp.Header == nil {
				return ""
			}
			return resp.Header.Get(textproto.CanonicalMIMEHeaderKey(name))
		})
	case "response.json":
		if in.responseJSON == nil {
			in.responseJSON = in.answer.parse(resp.JSON)
		}
		return in.responseJSON
	}
	return nil
}

// errSize is that a body is sent without its length.
var errSize = errors.New("the length of the body is not known")

// errEmpty is that a text which is not there is converted.
var errEmpty = errors.New("a text that is empty or missing cannot be converted")

var errBody = &rule.RequestError{Status: http.StatusBadRequest, Reason: "The body of the request could not be read."}

// readBody parses the body of the request. What is no body has no fields.
func (in *input) readBody() ref.Val {
	text := []byte("{}")
	if in.req.JSON != nil {
		body, err := in.req.JSON()
		if err != nil {
			wrong, told := errors.AsType[*rule.RequestError](err)
			if !told {
				wrong = errBody
			}
			return in.body.fail(wrong)
		}
		if len(body) > 0 {
			text = body
		}
	}
	return in.body.parse(text)
}

// secretHeaders cannot be read, so that no rule contains a secret: rules are shown, and
// kept in the history.
var secretHeaders = map[string]bool{"Authorization": true, "Proxy-Authorization": true, "Cookie": true, "X-Api-Key": true}

func (in *input) header(name string) string {
	name = textproto.CanonicalMIMEHeaderKey(name)
	switch {
	case secretHeaders[name]:
		return ""
	case name == "Host" && in.req.Host != "":
		return match.CanonicalHost(in.req.Host)
	case in.req.Values == nil:
		return ""
	}
	return joined(in.req.Values.Header, name)
}

// joined are all values of a name. A client that sends two is not taken for one that
// sends only the first.
func joined(values func(string, int) (string, int), name string) string {
	all, next := values(name, 0)
	for next != 0 {
		var more string
		if more, next = values(name, next); next != 0 {
			all += ", " + more
		}
	}
	return all
}

// textLookup is a map of texts in which every name is. Names without a value are empty, as an
// empty value is everywhere a value that is absent. Nothing but to look up a name is asked
// of it: see checkReads.
type textLookup struct {
	traits.Mapper
	value func(name string) string
}

var noTexts = types.NewStringStringMap(types.DefaultTypeAdapter, nil)

func textsOf(value func(name string) string) textLookup { return textLookup{noTexts, value} }

func (m textLookup) Find(name ref.Val) (ref.Val, bool) {
	if name, ok := name.(types.String); ok {
		return types.String(m.value(string(name))), true
	}
	return types.MaybeNoSuchOverloadErr(name), false
}

func (m textLookup) Get(name ref.Val) ref.Val {
	value, _ := m.Find(name)
	return value
}

func (m textLookup) Contains(name ref.Val) ref.Val {
	value, found := m.Find(name)
	if !found {
		return value
	}
	return types.Bool(value != types.String(""))
}
