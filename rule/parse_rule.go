package rule

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/notation"
)

// The fields of the mappings in a document, in the order in which they are written.
var (
	documentFields = []string{"levels", "rules", "exempt", "block"}
	listFields     = []string{"ip", "user", "api_key"}
	costFields     = []string{"estimate", "default", "actual"}
	countFields    = []string{"status"}

	ruleFields = newTable(
		field[Rule]{"id", (*parser).id, func(r *Rule) *document.Element { return document.NewText(r.ID) }},
		field[Rule]{"description", (*parser).description, func(r *Rule) *document.Element { return unless("", r.Description, document.NewText) }},
		mappingField("match", matchFields, func(r *Rule) *Match { return &r.Match }),
		field[Rule]{"key", (*parser).key, func(r *Rule) *document.Element { return oneOrList(textsOf(r.Key)) }},
		field[Rule]{"algorithm", nil, func(r *Rule) *document.Element { return unless(0, r.Algorithm, wordElement) }},
		ofQuota("limit"), ofQuota("limits"), ofQuota("levels"), ofQuota("burst"), ofQuota("zone"), ofQuota("starts"),
		integerField("buckets", "E013", 2, weir.MaxBuckets, 0, func(r *Rule) *int { return &r.Buckets }),
		truthField("shape", func(r *Rule) *bool { return &r.Shape }),
		ofQuota("concurrency"),
		field[Rule]{"hold_ttl", (*parser).holdTTL, func(r *Rule) *document.Element { return unless(0, r.HoldTTL, spanElement) }},
		field[Rule]{"wait", (*parser).wait, waitElement},
		wordField("priority", ParsePriority, func(r *Rule) *Priority { return &r.Priority }),
		field[Rule]{"shares", (*parser).shares, func(r *Rule) *document.Element { return shareFields.element(&r.Shares).OrNil() }},
		field[Rule]{"tiers", nil, func(r *Rule) *document.Element { return quotasElement(r.Tiers, quotaFields) }},
		field[Rule]{"overrides", nil, func(r *Rule) *document.Element { return quotasElement(r.Overrides, quotaFields) }},
		wordField("mode", ParseMode, func(r *Rule) *Mode { return &r.Mode }),
		field[Rule]{"on_failure", nil, onFailureElement},
		field[Rule]{"count_denied", (*parser).countDenied, countDeniedElement},
		field[Rule]{"cost", (*parser).cost, costElement},
		field[Rule]{"count", (*parser).countOf, countElement},
		textField("unit", func(r *Rule) *string { return &r.Unit }),
		wordField("on_expiry", ParseExpiry, func(r *Rule) *Expiry { return &r.OnExpiry }),
		leaseField(func(r *Rule) *time.Duration { return &r.Lease }),
		field[Rule]{"tokens", (*parser).tokens, tokensElement},
		field[Rule]{"mcp", (*parser).mcp, mcpElement},
		field[Rule]{"penalty", (*parser).penalty, penaltyElement},
		field[Rule]{"warn", (*parser).thresholds, thresholdsElement},
		mappingField("deny", denyFields, func(r *Rule) *Deny { return &r.Deny }),
	)

	denyFields = newTable(
		integerField("status", "E017", 400, 599, http.StatusTooManyRequests, func(d *Deny) *int { return &d.Status }),
		integerField("code", "E017", 0, math.MaxInt32, 0, func(d *Deny) *int { return &d.Code }),
		textField("message", func(d *Deny) *string { return &d.Message }),
	)
)

// FieldNames returns the names of all fields, in the order of the reference: of a
// "document", a "rule", its "match", "shares", "cost", "count", "tokens", "penalty", "wait", "on_failure" or "deny", "weights", a "quota" or a "list".
func FieldNames(of string) []string {
	return slices.Clone(map[string][]string{
		"document": documentFields, "rule": ruleFields.names, "match": matchFields.names, "shares": shareFields.names, "cost": costFields, "count": countFields,
		"tokens": tokenFields.names, "penalty": penaltyFields.names, "on_failure": fallbackFields.names, "wait": waitFields.names, "weights": weightFields.names, "deny": denyFields.names, "quota": quotaFields.names, "list": listFields,
	}[of])
}

// rule reads one rule as far as it can be read by itself.
func (p *parser) rule(e *document.Element) *pending {
	r := &pending{at: e.Position}
	if r.fields = p.fields(e, wholeRule, ruleFields.names); r.fields == nil {
		return r
	}
	ruleFields.readAll(p, r.fields, "", &r.Rule)
	if r.fields["id"] == nil {
		p.errorf("E007", r.at, "id", "required; give the rule a name that no other rule has, such as login")
	}
	if r.fields["key"] == nil {
		p.errorf("E007", r.at, "key", "required; write what identifies a client, such as ip or user, or global to count all clients together")
	}
	p.checkAny(r)
	if err := r.validateMCP(); err != nil {
		p.errorf("E041", r.field("mcp"), "mcp", "%v", err)
	}
	if err := r.validateUnit(); err != nil {
		p.errorf("E029", r.fields["unit"].Position, "unit", "%v", err)
	}
	p.readQuotas(r)
	if slices.ContainsFunc(r.Key, func(s Source) bool { return s.Kind == Tier }) {
		if err := checkTierNames(r.Tiers); err != nil {
			p.errorf("E012", r.fields["tiers"].Position, "tiers", "%v", err)
		}
	}
	var ok bool
	if r.Algorithm, ok = word(p, r.fields["algorithm"], "algorithm", weir.ParseAlgorithm); ok {
		p.checkLimits(r)
	}
	r.OnFailure = r.usualFailure()
	if e := r.fields["on_failure"]; e != nil {
		p.onFailure(e, r)
	}
	return r
}

// unlessDeniedEarlier is the word for that in count_denied.
const unlessDeniedEarlier = "unless_denied_earlier"

func (p *parser) countDenied(e *document.Element, field string, r *Rule) {
	switch {
	case e.Kind == document.Text && e.Text == unlessDeniedEarlier:
		r.CountDenied, r.UnlessDeniedEarlier = true, true
	case e.Kind == document.Text:
		p.errorf("E011", e.Position, field, "%s is unknown; %s", document.Quote(e.Text), notation.Hint(e.Text, []string{unlessDeniedEarlier}, "write true, false or "+unlessDeniedEarlier))
	default:
		r.CountDenied = p.truth(e, field)
	}
}

func countDeniedElement(r *Rule) *document.Element {
	if r.UnlessDeniedEarlier {
		return document.NewText(unlessDeniedEarlier)
	}
	return unless(false, r.CountDenied, document.NewTruth)
}

// reservedIDs would be taken for something else in the path of an API call.
var reservedIDs = []string{".", "..", "history", "rollback"}

func (p *parser) id(e *document.Element, _ string, r *Rule) {
	id, ok := p.text(e, "id", math.MaxInt)
	switch {
	case !ok:
	case len(id) > MaxIDLen:
		p.errorf("E008", e.Position, "id", "%d bytes exceed the maximum of %d; shorten it, and put details into description", len(id), MaxIDLen)
	case slices.Contains(reservedIDs, id):
		p.errorf("E008", e.Position, "id", "%q has another meaning in URLs of the API; choose another id", id)
	case strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") != "":
		p.errorf("E008", e.Position, "id", "%s has characters other than letters, digits, dots, dashes and underscores; remove them, and put details into description", document.Quote(id))
	default:
		r.ID, p.report.rule = id, id
	}
}

// description takes several lines, unlike other texts.
func (p *parser) description(e *document.Element, _ string, r *Rule) {
	switch r.Description = e.Text; {
	case !e.IsScalar() && e.Kind != document.Nothing:
		p.errorf("E006", e.Position, "description", "this is %s; write a text", e.Describe())
	case len(e.Text) > maxDescription:
		p.errorf("E006", e.Position, "description", "%d bytes exceed the maximum of %d; shorten it", len(e.Text), maxDescription)
	}
}

func (p *parser) key(e *document.Element, _ string, r *Rule) {
	if len(e.Items) > maxParts {
		p.errorf("E012", e.Position, "key", "%d parts exceed the maximum of %d; remove some", len(e.Items), maxParts)
		return
	}
	for _, part := range p.texts(e, "key", maxText) {
		source, err := ParseSource(part.Text)
		if err != nil && isLevelName(part.Text) {
			p.useLevel("E012", "key", part, err)
			source, err = Source{Kind: Level, Name: part.Text}, nil
		}
		switch {
		case err != nil:
			p.errorf("E012", part.Position, "key", "%v", err)
			continue
		case slices.Contains(r.Key, source):
			p.errorf("E012", part.Position, "key", "%s is given twice; write it once", source)
		case source.Kind == IP && slices.ContainsFunc(r.Key, func(s Source) bool { return s.Kind == IP }):
			p.errorf("E012", part.Position, "key", "the address is given twice; write one part, as in ip/24/48 for /24 of IPv4 and /48 of IPv6")
		case source.Kind == Global && len(e.Items) > 1:
			p.errorf("E012", part.Position, "key", "global is the same for all clients, so it cannot be combined with other parts; keep one or the other")
		case source.Kind == Levels && len(e.Items) > 1:
			p.errorf("E012", part.Position, "key", "levels is each level by itself, so it cannot be combined with other parts; keep one or the other")
		}
		r.Key = append(r.Key, source)
	}
}

// cost reads the cost, which is a number, or fields for what is known before and after.
func (p *parser) cost(e *document.Element, field string, r *Rule) {
	if e.Kind == document.Mapping {
		f := p.fields(e, "cost", costFields)
		if len(e.Members) == 0 {
			p.errorf("E006", e.Position, "cost", "it is empty; write estimate, actual or both, or a number")
		}
		r.CostActual = p.expression(f["actual"], ForActual)
		if e, field = f["estimate"], "cost: estimate"; e != nil && e.Kind != document.Integer {
			r.CostEstimate = p.expression(e, ForEstimate)
			e, field = f["default"], "cost: default"
		} else if other := f["default"]; other != nil {
			p.errorf("E010", other.Position, "cost: default", "it is for an estimate that cannot be evaluated, and there is none that is an expression; remove it, or rename it to estimate")
		}
	}
	if r.Cost = p.integer(e, "E016", field, 1, weir.MaxUnits); r.Cost == 1 {
		r.Cost = 0
	}
}

func costElement(r *Rule) *document.Element {
	number := unless(1, cmp.Or(r.Cost, 1), document.NewInteger)
	if r.CostEstimate == "" && r.CostActual == "" {
		return number
	}
	e := &document.Element{Kind: document.Mapping}
	if r.CostEstimate == "" {
		e.Add("estimate", number)
	} else {
		e.Add("estimate", document.NewText(r.CostEstimate))
		e.Add("default", number)
	}
	e.Add("actual", unless("", r.CostActual, document.NewText))
	return e
}

// countOf reads which responses count.
func (p *parser) countOf(e *document.Element, _ string, r *Rule) {
	f := p.fields(e, "count", countFields)
	if f != nil && f["status"] == nil {
		p.errorf("E007", e.Position, "count: status", "required; write the statuses that count, such as [401, 403, 5xx]")
	}
	p.values(f["status"], "count: status", func(v *document.Element) {
		statuses, err := ParseStatuses(v.Text)
		if err != nil {
			p.errorf("E026", v.Position, "count: status", "%v", err)
		}
		r.Count.Status = append(r.Count.Status, statuses)
	})
}

func countElement(r *Rule) *document.Element {
	list := &document.Element{Kind: document.List}
	for _, s := range r.Count.Status {
		if s.First == s.Last {
			list.Items = append(list.Items, document.NewInteger(int64(s.First)))
		} else {
			list.Items = append(list.Items, document.NewText(s.String()))
		}
	}
	e := &document.Element{Kind: document.Mapping}
	switch len(list.Items) {
	case 0:
	case 1:
		e.Add("status", list.Items[0])
	default:
		e.Add("status", list)
	}
	return e.OrNil()
}

// oneOrList is nil for none.
func oneOrList(values []string) *document.Element {
	switch len(values) {
	case 0:
		return nil
	case 1:
		return document.NewText(values[0])
	}
	return document.NewList(values)
}
