package rule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/spelling"
)

// The fields of a document, in the order in which they are written.
var (
	documentFields = []string{"rules", "exempt", "block"}
	ruleFields     = []string{
		"id", "description", "match", "key", "algorithm", "limit", "limits", "burst", "zone", "starts", "buckets", "shape", "concurrency", "hold_ttl", "wait", "priority", "shares",
		"tiers", "overrides", "mode", "on_failure", "count_denied", "cost", "count", "unit", "on_expiry", "tokens", "penalty", "warn", "deny",
	}
	matchFields  = []string{"method", "host", "path", "attributes", "when"}
	quotaFields  = []string{"limit", "limits", "burst", "zone", "starts", "concurrency", "priority"}
	costFields   = []string{"estimate", "default", "actual"}
	countFields  = []string{"status"}
	tokenFields  = []string{"api", "weights", "models", "default_output", "on_overrun"}
	weightFields = []string{"input", "output", "cached"}
	denyFields   = []string{"status", "code", "message"}
	listFields   = []string{"ip", "user", "api_key"}
)

// Fields returns the names of all fields, in the order of the reference: of a
// "document", a "rule", its "match", "shares", "cost", "count", "tokens", "penalty", "wait" or "deny", "weights", a "quota" or a "list".
func Fields(of string) []string {
	return slices.Clone(map[string][]string{
		"document": documentFields, "rule": ruleFields, "match": matchFields, "shares": shareFields, "cost": costFields, "count": countFields, "tokens": tokenFields, "penalty": penaltyFields, "wait": waitFields, "weights": weightFields, "deny": denyFields, "quota": quotaFields, "list": listFields,
	}[of])
}

// fieldsElsewhere are well-known names of fields, of whichever mapping they stand in.
var fieldsElsewhere = map[string]string{
	"allowlist": "exempt", "allow_list": "exempt", "whitelist": "exempt", "white_list": "exempt",
	"denylist": "block", "deny_list": "block", "blacklist": "block", "black_list": "block", "blocklist": "block", "block_list": "block",
	"name": "id", "rate": "limit", "rates": "limits", "rate_limit": "limit", "by": "key", "strategy": "algorithm",
	"timezone": "zone", "time_zone": "zone", "tz": "zone", "billing_day": "starts", "start": "starts", "anchor": "starts",
	"weight": "cost", "hits_addend": "cost", "failure_mode": "on_failure", "fallback": "on_failure",
	"concurrent": "concurrency", "max_concurrency": "concurrency", "max_concurrent": "concurrency", "concurrent_requests": "concurrency", "in_flight": "concurrency", "max_in_flight": "concurrency",
	"url": "path", "uri": "path", "route": "path", "endpoint": "path", "domain": "host", "verb": "method",
	"warn_at": "warn", "warnings": "warn", "thresholds": "warn", "soft_limit": "warn",
	"status_code": "status", "http_status": "status", "body": "message",
	"address": "ip", "addresses": "ip", "client_ip": "ip", "cidr": "ip", "user_id": "user",
}

const (
	maxName        = 100    // bytes of a tier, an attribute, a header and the like
	maxText        = 1024   // of other texts
	maxDescription = 10_000 // which may have several lines
	maxParts       = 8      // of a key
	maxRates       = 16     // of a quota; each is one more thing to charge
)

// What a mapping is called that is no field.
const (
	wholeDocument = "the document"
	wholeRule     = "a rule"
)

// fields are the values of a mapping by name.
type fields map[string]*document.Element

// Whatever reads a field takes nil, one that is not there, for its default.

// fields checks the names in a mapping. What it is says a message.
func (p *parser) fields(e *document.Element, what string, known []string) fields {
	if e == nil {
		return nil
	}
	if e.Kind != document.Mapping {
		p.errorf("E006", e.Place, what, "this is %s; write fields here, such as %s", e.Describe(), strings.Join(known[:min(3, len(known))], ", "))
		return nil
	}
	f, meant := make(fields, min(len(e.Members), len(known))), fields{}
	for _, m := range e.Members {
		name := m.Name.Text
		if slices.Contains(known, name) {
			f[name] = m.Value
			continue
		}
		unknown := what + " has no field " + document.Quote(name)
		if here := spelling.Called(name, fieldsElsewhere); slices.Contains(known, here) {
			unknown += fmt.Sprintf("; it is called %q here", here)
			meant[here] = m.Value
		} else if near := spelling.Nearest(name, known); near != "" {
			unknown += fmt.Sprintf("; did you mean %q?", near)
			meant[near] = m.Value
		} else {
			unknown += "; remove it, or use one of " + strings.Join(known, ", ")
		}
		p.problem(Error, "E005", m.Name.Place, strings.TrimPrefix(fieldPath(what)+"."+document.Clip(name, maxName), "."), unknown)
	}
	for name, value := range meant {
		if f[name] == nil {
			f[name] = value // so that it is not missed, and is checked
		}
	}
	return f
}

// text reads a scalar, also one that looks like a number: names may.
func (p *parser) text(e *document.Element, field string, most int) (string, bool) {
	switch {
	case e == nil:
	case e.Kind == document.Nothing || e.IsScalar() && e.Text == "":
		p.errorf("E006", e.Place, field, "the value is empty; write one, or remove the field")
	case !e.IsScalar():
		p.errorf("E006", e.Place, field, "this is %s; write one value", e.Describe())
	case len(e.Text) > most:
		p.errorf("E006", e.Place, field, "%d bytes exceed the maximum of %d; shorten it", len(e.Text), most)
	case strings.ContainsFunc(e.Text, unicode.IsControl):
		p.errorf("E006", e.Place, field, "it has invisible characters; remove them")
	default:
		return e.Text, true
	}
	return "", false
}

// texts reads one value or a list of them, and returns those that are good.
func (p *parser) texts(e *document.Element, field string, most int) []*document.Element {
	if e == nil {
		return nil
	}
	values := []*document.Element{e}
	if e.Kind == document.List {
		values = e.Items
	}
	if len(values) == 0 {
		p.errorf("E006", e.Place, field, "the list is empty; write a value, or remove the field")
	}
	good := make([]*document.Element, 0, len(values))
	for _, v := range values {
		if _, ok := p.text(v, field, most); ok {
			good = append(good, v)
		}
	}
	return good
}

// integer reads a whole number within bounds.
func (p *parser) integer(e *document.Element, code, field string, least, most int64) int64 {
	if e == nil {
		return 0
	}
	n, err := strconv.ParseInt(e.Text, 10, 64)
	switch {
	case e.Kind != document.Integer:
		p.errorf("E006", e.Place, field, "this is %s; write a whole number without quotes", e.Describe())
	case err != nil || n < least || n > most:
		p.errorf(code, e.Place, field, "%s is out of range; write %d to %d", document.Clip(e.Text, 40), least, most)
	default:
		return n
	}
	return 0
}

// truth reads true or false.
func (p *parser) truth(e *document.Element, field string) bool {
	if e != nil && e.Kind != document.Truth {
		p.errorf("E006", e.Place, field, "this is %s; write true or false", e.Describe())
		return false
	}
	return e != nil && strings.EqualFold(e.Text, "true")
}

// word reads one of a few words, and reports whether there is one to go on with.
func word[T any](p *parser, e *document.Element, field string, parse func(string) (T, error)) (value T, ok bool) {
	if e == nil {
		return value, true
	}
	name, ok := p.text(e, field, maxText)
	if !ok {
		return value, false
	}
	value, err := parse(name)
	if err != nil {
		p.errorf("E011", e.Place, field, "%s", reason(err))
	}
	return value, err == nil
}
