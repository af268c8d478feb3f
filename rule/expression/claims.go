package expression

import (
	"errors"
	"strconv"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/weirhq/weir/rule"
)

// forClaims is the purpose of expressions over the claims of a token. Rules have none.
const forClaims = rule.ForActual + 1

var claimsVariables = map[string]*cel.Type{"jwt.claims": cel.DynType}

// Claims is an expression over the claims of a token, such as jwt.claims.org, whose value is
// a text. It is safe for concurrent use.
type Claims struct{ program program }

// CompileClaims compiles an expression over jwt.claims. An error is a [rule.ExpressionError].
func CompileClaims(source string) (*Claims, error) {
	if len(source) > rule.MaxExpression {
		return nil, &rule.ExpressionError{Reason: "it exceeds the maximum of " + strconv.Itoa(rule.MaxExpression) + " bytes; shorten it"}
	}
	p, err := compileProgram(forClaims, source)
	if err != nil {
		return nil, err
	}
	return &Claims{p}, nil
}

// Text returns the value for some claims, in JSON: "" if a claim that it reads is missing or
// null. Whole numbers and booleans are written as in JSON; other values are an error, which
// contains nothing of the claims.
func (c *Claims) Text(claims []byte) (string, error) {
	in := claimsInput{text: claims}
	value, _, err := c.program.Eval(&in)
	switch {
	case in.json.wrong != nil:
		return "", errors.New("the claims are not JSON that can be read")
	case err != nil:
		if f := discreet(err.Error()).(*failure); !f.missing {
			return "", f
		}
		return "", nil
	}
	switch value := value.(type) {
	case types.String:
		return string(value), nil
	case types.Int:
		return strconv.FormatInt(int64(value), 10), nil
	case types.Uint:
		return strconv.FormatUint(uint64(value), 10), nil
	case types.Bool:
		return strconv.FormatBool(bool(value)), nil
	case types.Null:
		return "", nil
	}
	return "", errors.New("the result is neither a text nor a whole number")
}

// claimsInput is what such an expression reads, for one evaluation.
type claimsInput struct {
	text  []byte
	json  jsonText
	value ref.Val // nil until it is read
}

func (in *claimsInput) Parent() cel.Activation { return nil }

// ResolveName returns the value of a variable.
func (in *claimsInput) ResolveName(name string) (any, bool) {
	if name != "jwt.claims" {
		return nil, false
	}
	if in.value == nil {
		in.value = in.json.parse(in.text)
	}
	return in.value, true
}
