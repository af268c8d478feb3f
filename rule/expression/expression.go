// Package expression lets rules have expressions in CEL, the Common Expression Language.
// To import it is enough:
//
//	import _ "github.com/weirhq/weir/rule/expression"
//
// An expression is compiled when rules are parsed and when they are compiled. What one
// evaluation may cost is bounded, whatever a client sends.
package expression

import (
	"errors"
	"math"
	"net/http"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/ext"
	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// Bounds on one expression, besides its length.
const (
	maxNodes = 2000   // after macros are expanded
	maxDepth = 150    // of nesting
	maxRegex = 2000   // instructions of a regular expression
	maxCost  = 10_000 // of an evaluation, in steps as CEL counts them
)

func init() { rule.RegisterExpressions(compile) }

// The variables of expressions, by what the expression is for. Names with a dot are one
// name for CEL, so each is looked up only if an expression reads it.
var (
	requestVariables = map[string]*cel.Type{
		"request.method": cel.StringType, "request.host": cel.StringType, "request.path": cel.StringType,
		"request.headers": texts, "request.query": texts, "request.attributes": texts,
		"request.user": cel.StringType, "request.tier": cel.StringType, "request.ip": cel.StringType,
		"request.size": cel.IntType, "request.json": cel.DynType,
	}
	responseVariables = map[string]*cel.Type{
		"response.status": cel.IntType, "response.headers": texts, "response.size": cel.IntType,
		"response.json": cel.DynType, "response.duration": cel.DurationType,
	}
	texts = cel.MapType(cel.StringType, cel.StringType)
)

// environment is made when the first expression is compiled: to make one takes a while.
var environment = [...]func() (*cel.Env, error){
	rule.ForMatch: beforeResponse, rule.ForEstimate: beforeResponse,
	rule.ForActual: sync.OnceValues(func() (*cel.Env, error) { return newEnvironment(requestVariables, responseVariables) }),
	forClaims:      sync.OnceValues(func() (*cel.Env, error) { return newEnvironment(claimsVariables) }),
}

var beforeResponse = sync.OnceValues(func() (*cel.Env, error) { return newEnvironment(requestVariables) })

func newEnvironment(all ...map[string]*cel.Type) (*cel.Env, error) {
	options := append(variables(all),
		cel.OptionalTypes(), ext.Math(), cel.CrossTypeNumericComparisons(true),
		cel.ParserExpressionSizeLimit(rule.MaxExpression), cel.ParserErrorRecoveryLimit(1),
		cel.ParserRecursionLimit(maxDepth), cel.ExpressionNodeLimit(maxNodes))
	return cel.NewCustomEnv(append(append(options, cel.StdLib()), conversions()...)...)
}

// conversions are those of CEL, except that an empty text is a value that is missing, as it is
// everywhere, and not one that cannot be converted.
func conversions() (options []cel.EnvOption) {
	for name, of := range map[string]struct {
		overload string
		to       *cel.Type
	}{
		overloads.TypeConvertBool: {overloads.StringToBool, cel.BoolType}, overloads.TypeConvertDouble: {overloads.StringToDouble, cel.DoubleType},
		overloads.TypeConvertInt: {overloads.StringToInt, cel.IntType}, overloads.TypeConvertUint: {overloads.StringToUint, cel.UintType},
		overloads.TypeConvertDuration: {overloads.StringToDuration, cel.DurationType}, overloads.TypeConvertTimestamp: {overloads.StringToTimestamp, cel.TimestampType},
	} {
		convert := func(text ref.Val) ref.Val {
			if text == types.String("") {
				return types.WrapErr(errEmpty)
			}
			return text.ConvertToType(of.to)
		}
		options = append(options, cel.Function(name, cel.Overload(of.overload, []*cel.Type{cel.StringType}, of.to, cel.UnaryBinding(convert))))
	}
	return options
}

func variables(all []map[string]*cel.Type) (options []cel.EnvOption) {
	for _, some := range all {
		for name, t := range some {
			options = append(options, cel.Variable(name, t))
		}
	}
	return options
}

// program is an expression that is ready.
type program struct {
	cel.Program
	reads map[string]bool // variables
}

// Reads implements rule.Expression.
func (p program) Reads(variable string) bool { return p.reads[variable] }

func compile(purpose rule.Purpose, source string) (rule.Expression, error) {
	p, err := compileProgram(purpose, source)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func compileProgram(purpose rule.Purpose, source string) (compiled program, err error) {
	defer func() { // a document must not end the process, whatever the library makes of it
		if recover() != nil {
			compiled, err = program{}, &rule.ExpressionError{Reason: "it cannot be compiled; write it in another way"}
		}
	}()
	env, err := environment[purpose]()
	if err != nil {
		return program{}, err
	}
	ast, issues := env.Compile(source)
	if issues.Err() != nil {
		return program{}, explain(purpose, source, issues)
	}
	reads, err := checkReads(ast, source)
	if err != nil {
		return program{}, err
	}
	if err := checkPatterns(ast, source); err != nil {
		return program{}, err
	}
	if err := checkResult(purpose, ast.OutputType()); err != nil {
		return program{}, err
	}
	p, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(maxCost), cel.CostTracking(costs{}))
	if err != nil {
		return program{}, &rule.ExpressionError{Reason: reason(err.Error())}
	}
	return program{p, reads}, nil
}

// costs are those of functions, in steps. CEL takes a function for one step if it does not
// know the types of its arguments before, and so for those with values of a JSON text.
type costs struct{}

func (costs) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	cost := uint64(1)
	for _, arg := range args {
		switch arg := arg.(type) {
		case types.String:
			cost += uint64(len(arg)) / 200
		case types.Bytes:
			cost += uint64(len(arg)) / 200
		case traits.Lister:
			if function == operators.In {
				cost += uint64(arg.Size().(types.Int))
			}
			cost += comparison(function)
		case traits.Mapper:
			cost += comparison(function)
		}
	}
	if len(args) == 2 && function == overloads.Matches {
		text, _ := args[0].(types.String)
		pattern, _ := args[1].(types.String)
		cost += uint64(len(text)) / 10 * uint64(1+len(pattern)/4)
	}
	return &cost
}

// comparison is the cost of a list or an object that is compared, in which there may be
// others.
func comparison(function string) uint64 {
	if function == operators.Equals || function == operators.NotEquals {
		return maxValues / 10
	}
	return 0
}

func checkResult(purpose rule.Purpose, is *cel.Type) error {
	wanted, what := []*cel.Type{cel.IntType, cel.UintType, cel.DoubleType, cel.DynType}, "a number"
	switch purpose {
	case rule.ForMatch:
		wanted, what = []*cel.Type{cel.BoolType, cel.DynType}, "true or false"
	case forClaims:
		wanted, what = []*cel.Type{cel.StringType, cel.IntType, cel.UintType, cel.BoolType, cel.DynType}, "a text or a whole number"
	}
	for _, t := range wanted {
		if t.IsExactType(is) {
			return nil
		}
	}
	return &rule.ExpressionError{Reason: "the result is of type " + is.String() + "; write an expression that is " + what}
}

// Holds implements rule.Expression.
func (p program) Holds(req *rule.Request) (bool, error) {
	value, err := p.evaluate(req, nil)
	if err != nil {
		return false, err
	}
	if b, ok := value.(types.Bool); ok {
		return bool(b), nil
	}
	return false, errors.New("the result is neither true nor false")
}

// Units implements rule.Expression. Fractions are rounded up.
func (p program) Units(req *rule.Request, resp *rule.Response) (int64, error) {
	value, err := p.evaluate(req, resp)
	if err != nil {
		if f, failed := err.(*failure); failed && !f.missing {
			return 0, noCost(f.says)
		}
		return 0, err
	}
	var units float64
	switch value := value.(type) {
	case types.Int:
		if value >= 0 && value <= weir.MaxUnits {
			return int64(value), nil
		}
		units = float64(value)
	case types.Uint:
		units = float64(value)
	case types.Double:
		units = float64(value)
	case types.Null:
		return 0, &failure{"the result is null", true}
	case *types.Unknown: // there is no response yet
		return 0, nil
	default:
		return 0, noCost("the result is not a number")
	}
	if !(units >= 0 && math.Ceil(units) <= weir.MaxUnits) { // nor is NaN
		return 0, noCost("the result is negative, or too large")
	}
	return int64(math.Ceil(units)), nil
}

// noCost is that what a client sends makes no cost.
func noCost(why string) error {
	return &rule.RequestError{Status: http.StatusBadRequest, Reason: "The cost of the request cannot be computed: " + why + "."}
}

func (p program) evaluate(req *rule.Request, resp *rule.Response) (ref.Val, error) {
	in := input{req: req, resp: resp}
	value, _, err := p.Eval(&in)
	switch {
	case in.body.wrong != nil:
		return nil, in.body.wrong
	case in.answer.wrong != nil:
		return nil, &failure{"the response is not JSON that can be read", false}
	case err != nil:
		return nil, discreet(err.Error())
	}
	return value, nil
}

// failure is why an expression has no value.
type failure struct {
	says    string
	missing bool // the request lacks something that the expression reads
}

func (f *failure) Error() string { return f.says }

// discreet says what went wrong, and nothing of what the client sent.
func discreet(text string) error {
	for _, known := range []struct {
		begins string
		failure
	}{
		{"no such key", failure{"a field or an index that it reads does not exist", true}},
		{"no such attribute", failure{"a field that it reads does not exist", true}},
		{"index ", failure{"an index that it reads does not exist", true}},
		{errSize.Error(), failure{errSize.Error(), true}},
		{errEmpty.Error(), failure{errEmpty.Error(), true}},
		{"operation cancelled: actual cost limit exceeded", failure{"the evaluation takes too many steps", false}},
		{"no such overload", failure{"an operation does not fit the types of its values; convert them, as in double(x) or int(x)", false}},
		{"divi", failure{"it divides by zero", false}},
		{"modulus by zero", failure{"it divides by zero", false}},
		{"integer overflow", failure{"a number is too large", false}},
		{"unsigned integer overflow", failure{"a number is too large", false}},
	} {
		if strings.HasPrefix(text, known.begins) {
			return &known.failure
		}
	}
	return &failure{"a value cannot be converted", false}
}
