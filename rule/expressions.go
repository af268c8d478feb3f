package rule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/document"
)

// Bounds on expressions. Programs of many long expressions would take much memory.
const (
	MaxExpression  = 1024 // bytes of one
	MaxExpressions = 1000 // in a document

	maxExpressionBytes = 64 << 10 // of all of a document: to compile 1 KB takes milliseconds
)

// Expression is a compiled expression. It is safe for concurrent use. Errors contain
// nothing of a request.
type Expression interface {
	// Holds reports whether a condition holds for a request. The error is a [RequestError] if
	// the body of the request cannot be read.
	Holds(req *Request) (bool, error)

	// Units returns the cost of a request in units. The response is nil before there is one. The
	// error is a [RequestError] if the request has values that make no cost, and another error if
	// it has not all that the expression reads.
	Units(req *Request, resp *Response) (int64, error)

	// Reads reports whether the expression reads a variable, such as "request.json".
	Reads(variable string) bool
}

// Purpose is what an expression is for.
type Purpose uint8

const (
	ForMatch    Purpose = iota // match.when: a condition on the request
	ForEstimate                // cost.estimate: a cost by the request
	ForActual                  // cost.actual: a cost by request and response
)

// String returns the field of a rule that has such an expression.
func (p Purpose) String() string {
	return [...]string{ForMatch: "match: when", ForEstimate: "cost: estimate", ForActual: "cost: actual"}[p]
}

// ExpressionError tells why an expression does not compile.
type ExpressionError struct {
	Offset int    // where, in characters from the start
	Reason string // a sentence with the remedy
}

func (e *ExpressionError) Error() string { return e.Reason }

// RequestError reports a request that must be denied, because a rule cannot read it: with a default
// in its place, a client could choose what it pays. It contains nothing of the request.
type RequestError struct {
	Status int    // for HTTP: 400, 413, 415, or 503 if the client can try again
	Reason string // a sentence for the client

	// Denied is whether the request was denied before its body was read. Then no rule applies, not even
	// one that never denies.
	Denied bool
}

func (e *RequestError) Error() string { return "rule: " + e.Reason }

// Unwrap returns a *weir.InvalidError.
func (e *RequestError) Unwrap() error { return &weir.InvalidError{Field: "request", Reason: e.Reason} }

// language compiles expressions; nil if no package for them is in the program.
var language func(Purpose, string) (Expression, error)

// RegisterExpressions lets rules have expressions. Package rule/expression calls it when
// it is imported; only programs that need it pay for it. An error of compile should be an
// *ExpressionError.
func RegisterExpressions(compile func(purpose Purpose, source string) (Expression, error)) {
	language = compile
}

func compileExpression(purpose Purpose, source string) (Expression, error) {
	switch {
	case source == "":
		return nil, nil
	case language == nil:
		return nil, &ExpressionError{Reason: `this program cannot evaluate expressions; import _ "github.com/weirhq/weir/rule/expression" in it`}
	case len(source) > MaxExpression:
		return nil, &ExpressionError{Reason: fmt.Sprintf("%d bytes exceed the maximum of %d; shorten it", len(source), MaxExpression)}
	}
	return language(purpose, source)
}

// expressions compiles all expressions of a rule.
func (c *compiler) expressions(out *Entry) (err error) {
	for purpose, e := range []struct {
		source string
		to     *Expression
	}{
		ForMatch: {out.Match.When, &out.when}, ForEstimate: {out.CostEstimate, &out.estimate}, ForActual: {out.CostActual, &out.actual},
	} {
		if *e.to, err = compileExpression(Purpose(purpose), e.source); err != nil {
			return fmt.Errorf("%s: %w", Purpose(purpose), err)
		}
	}
	return nil
}

// expression reads an expression and checks that it compiles. It may have several lines.
func (p *parser) expression(e *document.Element, purpose Purpose) string {
	field := purpose.String()
	switch {
	case e == nil:
		return ""
	case !e.IsScalar() || e.Text == "":
		p.errorf("E006", e.Position, field, "this is %s; write an expression, such as request.size", e.Describe())
		return ""
	case strings.ContainsFunc(e.Text, func(c rune) bool { return c != '\n' && unicode.IsControl(c) }):
		p.errorf("E006", e.Position, field, "it has invisible characters; remove them")
		return ""
	}
	p.expressions++
	p.expressionBytes += len(e.Text)
	if p.expressions > MaxExpressions || p.expressionBytes > maxExpressionBytes {
		p.errorf("E002", e.Position, field, "%d expressions with %d bytes exceed the maximum of %d with %d bytes in a document; use match and attributes where they are enough", p.expressions, p.expressionBytes, MaxExpressions, maxExpressionBytes)
		return ""
	}
	if _, err := compileExpression(purpose, e.Text); err != nil {
		at := e.Position
		if wrong, ok := errors.AsType[*ExpressionError](err); ok {
			at = p.quoter.Within(at, e.Text, wrong.Offset)
		}
		p.errorf("E027", at, field, "%v", err)
		return ""
	}
	return e.Text
}

// ReadsBody reports whether an expression reads the body of requests: see Request.JSON.
func (t *Table) ReadsBody() bool { return t.readsBody }

// ReadsBody reports whether the actual cost depends on the body of the response: see
// Response.JSON.
func (c *Entry) ReadsBody() bool { return c.actual != nil && c.actual.Reads("response.json") }

func (c *Entry) readsRequest() bool {
	for _, e := range []Expression{c.when, c.estimate, c.actual} {
		if e != nil && e.Reads("request.json") {
			return true
		}
	}
	return false
}

// needsBody reports whether the body of a request decides whether the rule applies, or its cost. That of
// a prompt has attributes.
func (c *Entry) needsBody() bool {
	return c.Tokens != nil || c.MCP != nil || c.readsRequest() || slices.ContainsFunc([]Expression{c.when, c.estimate}, func(e Expression) bool {
		return e != nil && e.Reads("request.attributes")
	})
}

// Evaluates reports whether the rule has expressions.
func (c *Entry) Evaluates() bool { return c.when != nil || c.estimate != nil || c.actual != nil }

// Failures returns how often an expression of the rule could not be evaluated. Then the
// request is denied with a [RequestError], or, if it lacks something that the expression reads, the
// rule applies, and a cost is what it would be without the expression.
func (c *Entry) Failures() int64 { return c.failures.Load() }

// fail takes note of it.
func (c *Entry) fail(purpose Purpose, err error) error {
	err = fmt.Errorf("%s: %w", purpose, err)
	if c.failures.Add(1) == 1 && c.failed != nil {
		c.failed(c, err)
	}
	return err
}

// applies reports whether a request meets the condition of the rule. In doubt it does:
// a client cannot avoid a rule by a request that its expression cannot read. The error is a
// [RequestError], or nil.
func (c *Entry) applies(req *Request) (bool, error) {
	if c.when == nil {
		return true, nil
	}
	holds, err := c.when.Holds(req)
	if err != nil {
		_ = c.fail(ForMatch, err)
		return true, denies(err)
	}
	return holds, nil
}

// denies returns an error if the request must be denied because of it, else nil.
func denies(err error) error {
	if _, denied := errors.AsType[*RequestError](err); denied {
		return err
	}
	return nil
}
