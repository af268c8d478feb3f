package rule

import (
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/document"
)

// rule reads one rule as far as it can be read by itself.
func (p *parser) rule(e *document.Element) *pending {
	r := &pending{at: e.Place}
	r.fields = p.fields(e, wholeRule, ruleFields)
	if r.fields == nil {
		return r
	}
	p.id(r)
	p.report.rule = r.ID
	r.Description = p.description(r.fields["description"])
	r.Match = p.match(r.fields["match"])
	p.key(r)
	p.checkAny(r)
	algorithm, readAlgorithm := word(p, r.fields["algorithm"], "algorithm", weir.ParseAlgorithm)
	r.Algorithm = algorithm
	r.Tokens = p.tokens(r.fields["tokens"])
	p.options(r)
	p.shares(r)
	p.readQuotas(r)
	p.holdTTL(r)
	p.wait(r)
	p.checkTierKey(r)
	if readAlgorithm {
		p.checkLimits(r)
	}
	r.Count = p.countOf(r.fields["count"])
	if r.OnFailure = r.usualFailure(); r.fields["on_failure"] != nil {
		r.OnFailure, _ = word(p, r.fields["on_failure"], "on_failure", ParseFailure)
	}
	r.Penalty = p.penalty(r.fields["penalty"])
	r.Warn = p.thresholds(r.fields["warn"])
	r.Deny = p.deny(r.fields["deny"])
	return r
}

// reservedIDs would be taken for something else in the path of an API call.
var reservedIDs = []string{".", "..", "history", "rollback"}

func (p *parser) id(r *pending) {
	e := r.fields["id"]
	if e == nil {
		p.errorf("E007", r.at, "id", "required; give the rule a name that no other rule has, such as login")
		return
	}
	id, ok := p.text(e, "id", math.MaxInt)
	switch {
	case !ok:
	case len(id) > MaxIDLen:
		p.errorf("E008", e.Place, "id", "%d bytes exceed the maximum of %d; shorten it, and put details into description", len(id), MaxIDLen)
	case slices.Contains(reservedIDs, id):
		p.errorf("E008", e.Place, "id", "%q has another meaning in URLs of the API; choose another id", id)
	case strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") != "":
		p.errorf("E008", e.Place, "id", "%s has characters other than letters, digits, dots, dashes and underscores; remove them, and put details into description", document.Quote(id))
	default:
		r.ID = id
	}
}

// description takes several lines, unlike other texts.
func (p *parser) description(e *document.Element) string {
	switch {
	case e == nil:
		return ""
	case !e.IsScalar() && e.Kind != document.Nothing:
		p.errorf("E006", e.Place, "description", "this is %s; write a text", e.Describe())
	case len(e.Text) > maxDescription:
		p.errorf("E006", e.Place, "description", "%d bytes exceed the maximum of %d; shorten it", len(e.Text), maxDescription)
	}
	return e.Text
}

func (p *parser) key(r *pending) {
	e := r.fields["key"]
	if e == nil {
		p.errorf("E007", r.at, "key", "required; write what identifies a client, such as ip or user, or global to count all clients together")
		return
	}
	if len(e.Items) > maxParts {
		p.errorf("E012", e.Place, "key", "%d parts exceed the maximum of %d; remove some", len(e.Items), maxParts)
		return
	}
	for _, part := range p.texts(e, "key", maxText) {
		source, err := ParseSource(part.Text)
		switch {
		case err != nil:
			p.errorf("E012", part.Place, "key", "%v", err)
			continue
		case slices.Contains(r.Key, source):
			p.errorf("E012", part.Place, "key", "%s is given twice; write it once", source)
		case source.Kind == IP && slices.ContainsFunc(r.Key, func(s Source) bool { return s.Kind == IP }):
			p.errorf("E012", part.Place, "key", "the address is given twice; write one part, as in ip/24/48 for /24 of IPv4 and /48 of IPv6")
		case source.Kind == Global && len(e.Items) > 1:
			p.errorf("E012", part.Place, "key", "global is the same for all clients, so it cannot be combined with other parts; keep one or the other")
		}
		r.Key = append(r.Key, source)
	}
}

// options reads the fields that are one value each.
func (p *parser) options(r *pending) {
	f := r.fields
	r.Buckets = int(p.integer(f["buckets"], "E013", "buckets", 2, weir.MaxBuckets))
	r.Shape = p.truth(f["shape"], "shape")
	r.CountDenied = p.truth(f["count_denied"], "count_denied")
	p.cost(r)
	r.Mode, _ = word(p, f["mode"], "mode", ParseMode)
	r.Priority, _ = word(p, f["priority"], "priority", ParsePriority)
	r.OnExpiry, _ = word(p, f["on_expiry"], "on_expiry", ParseExpiry)
	if unit, ok := p.text(f["unit"], "unit", maxText); ok {
		r.Unit = unit
		if err := r.validateUnit(); err != nil {
			p.errorf("E029", f["unit"].Place, "unit", "%v", err)
		}
	}
}

// cost reads the cost, which is a number, or fields for what is known before and after.
func (p *parser) cost(r *pending) {
	e, field := r.fields["cost"], "cost"
	if e != nil && e.Kind == document.Mapping {
		f := p.fields(e, "cost", costFields)
		if len(e.Members) == 0 {
			p.errorf("E006", e.Place, "cost", "it is empty; write estimate, actual or both, or a number")
		}
		r.CostActual = p.expression(f["actual"], ForActual)
		if e, field = f["estimate"], "cost: estimate"; e != nil && e.Kind != document.Integer {
			r.CostEstimate = p.expression(e, ForEstimate)
			e, field = f["default"], "cost: default"
		} else if other := f["default"]; other != nil {
			p.errorf("E010", other.Place, "cost: default", "it is for an estimate that cannot be evaluated, and there is none that is an expression; remove it, or rename it to estimate")
		}
	}
	if r.Cost = p.integer(e, "E016", field, 1, weir.MaxUnits); r.Cost == 1 {
		r.Cost = 0
	}
}

// countOf reads which responses count.
func (p *parser) countOf(e *document.Element) (c Count) {
	f := p.fields(e, "count", countFields)
	if e != nil && f != nil && f["status"] == nil {
		p.errorf("E007", e.Place, "count: status", "required; write the statuses that count, such as [401, 403, 5xx]")
	}
	p.values(f["status"], "count: status", func(v *document.Element) {
		statuses, err := ParseStatuses(v.Text)
		if err != nil {
			p.errorf("E026", v.Place, "count: status", "%v", err)
		}
		c.Status = append(c.Status, statuses)
	})
	return c
}

func (p *parser) deny(e *document.Element) (d Deny) {
	f := p.fields(e, "deny", denyFields)
	if d.Status = int(p.integer(f["status"], "E017", "deny: status", 400, 599)); d.Status == http.StatusTooManyRequests {
		d.Status = 0
	}
	d.Code = int(p.integer(f["code"], "E017", "deny: code", 0, math.MaxInt32))
	d.Message, _ = p.text(f["message"], "deny: message", maxText)
	return d
}
