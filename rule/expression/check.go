package expression

import (
	"fmt"
	"net/textproto"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/rule"
)

// explain returns the first of what is wrong with an expression.
func explain(purpose rule.Purpose, source string, issues *cel.Issues) error {
	first := issues.Errors()[0]
	offset := offsetOf(source, first.Location)
	if text := unknownVariable(purpose, []rune(source)[min(offset, utf8.RuneCountInString(source)):], first.Message); text != "" {
		return &rule.ExpressionError{Offset: offset, Reason: text}
	}
	return &rule.ExpressionError{Offset: offset, Reason: reason(first.Message)}
}

// offsetOf is a place as CEL has it, in characters from the start.
func offsetOf(source string, at common.Location) int {
	if at.Line() < 1 {
		return 0
	}
	offset := max(0, at.Column())
	for i, line := range strings.SplitAfter(source, "\n") {
		if i+1 >= at.Line() {
			break
		}
		offset += utf8.RuneCountInString(line)
	}
	return offset
}

// variable is a name with its first field.
var variable = regexp.MustCompile(`^(request|response)\s*\.\s*([A-Za-z_][A-Za-z0-9_]*)`)

// unknownVariable says which variable is meant, if one is unknown.
func unknownVariable(purpose rule.Purpose, at []rune, message string) string {
	if !strings.HasPrefix(message, "undeclared reference") {
		return ""
	}
	found := variable.FindStringSubmatch(string(at))
	if found == nil || purpose == forClaims {
		if name, _, _ := strings.Cut(strings.TrimPrefix(message, "undeclared reference to '"), "'"); name != "" {
			return name + " is not known here; read fields of " + readable(purpose)
		}
		return ""
	}
	known := requestVariables
	if found[1] == "response" {
		if known = responseVariables; purpose != rule.ForActual {
			return "the response is not known yet; only cost: actual can read it"
		}
	}
	var names []string
	for name := range known {
		names = append(names, strings.TrimPrefix(name, found[1]+"."))
	}
	slices.Sort(names)
	text := found[1] + " has no field " + found[2]
	if near := notation.Nearest(found[2], names); near != "" {
		return text + fmt.Sprintf("; did you mean %q?", near)
	}
	return text + "; use one of " + strings.Join(names, ", ")
}

func readable(purpose rule.Purpose) string {
	switch purpose {
	case rule.ForActual:
		return "request and response, as in response.size"
	case forClaims:
		return "jwt.claims, as in jwt.claims.sub"
	}
	return "request, as in request.method"
}

// reason is a message of CEL, short and in our form.
func reason(message string) string {
	message = strings.TrimPrefix(message, "Syntax error: ")
	message, _, _ = strings.Cut(message, " expecting ")
	message, _, _ = strings.Cut(message, "\n")
	message = strings.TrimSuffix(message, " (in container '')")
	message = strings.ReplaceAll(message, "<EOF>", "end")
	if first, size := utf8.DecodeRuneInString(message); size > 0 {
		message = string(unicode.ToLower(first)) + message[size:]
	}
	return message + "; correct the expression"
}

// checkReads returns the variables that an expression reads. It finds what could not be read
// when the expression is evaluated.
func checkReads(a *cel.Ast, source string) (map[string]bool, error) {
	native, reads := a.NativeRep(), map[string]bool{}
	for _, e := range ast.MatchDescendants(ast.NavigateAST(native), ast.KindMatcher(ast.IdentKind)) {
		name := e.AsIdent()
		reads[name] = true
		if t := requestVariables[name]; t != texts && responseVariables[name] != texts {
			continue
		}
		key, ok := lookedUp(e)
		owner, _, _ := strings.Cut(name, ".") // CEL has the place of the dot
		at := max(0, offsetOf(source, native.SourceInfo().GetStartLocation(e.ID()))-len(owner))
		switch {
		case !ok:
			return nil, &rule.ExpressionError{Offset: at, Reason: fmt.Sprintf(`names in %s can only be looked up; write %[1]s["x"], which is "" if there is none, or "x" in %[1]s`, name)}
		case name == "request.headers" && secretHeaders[textproto.CanonicalMIMEHeaderKey(key)]:
			return nil, &rule.ExpressionError{Offset: at, Reason: "the header " + key + " is a secret, which no rule can read; use key: api_key, or an attribute of your application"}
		}
	}
	return reads, nil
}

// checkPatterns bounds regular expressions. One that is no literal could come from a client.
func checkPatterns(a *cel.Ast, source string) error {
	native := a.NativeRep()
	for _, e := range ast.MatchDescendants(ast.NavigateAST(native), ast.FunctionMatcher(overloads.Matches)) {
		call := e.AsCall()
		args := call.Args()
		wrong := &rule.ExpressionError{Offset: offsetOf(source, native.SourceInfo().GetStartLocation(args[len(args)-1].ID()))}
		pattern, ok := types.String(""), args[len(args)-1].Kind() == ast.LiteralKind
		if ok {
			pattern, ok = args[len(args)-1].AsLiteral().(types.String)
		}
		if !ok {
			wrong.Reason = "the pattern of matches is computed; write it as a text in quotes"
			return wrong
		}
		parsed, err := syntax.Parse(string(pattern), syntax.Perl)
		if err != nil {
			wrong.Reason = reason(err.Error())
			return wrong
		}
		if p, err := syntax.Compile(parsed.Simplify()); err != nil || len(p.Inst) > maxRegex {
			wrong.Reason = "the pattern of matches is too large; use smaller repetitions"
			return wrong
		}
	}
	return nil
}

// lookedUp tells whether a value of a variable is looked up, and by which name, if that is
// constant.
func lookedUp(e ast.NavigableExpr) (name string, ok bool) {
	parent, found := e.Parent()
	switch {
	case !found:
		return "", false
	case parent.Kind() == ast.SelectKind:
		return parent.AsSelect().FieldName(), !parent.AsSelect().IsTestOnly()
	case parent.Kind() != ast.CallKind:
		return "", false
	}
	call, key := parent.AsCall(), 0
	switch {
	case len(call.Args()) != 2:
		return "", false
	case call.FunctionName() == operators.Index && call.Args()[0].ID() == e.ID():
		key = 1
	case call.FunctionName() == operators.In && call.Args()[1].ID() == e.ID():
	default:
		return "", false
	}
	if arg := call.Args()[key]; arg.Kind() == ast.LiteralKind {
		if text, ok := arg.AsLiteral().(types.String); ok {
			name = string(text)
		}
	}
	return name, true
}
