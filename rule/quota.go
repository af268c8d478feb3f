package rule

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/notation"
)

// ParseQuota parses limits as a rule has them: one or several rates such as "100/1m" and
// "concurrency 20" for requests at the same time, or "unlimited" alone. The burst is 0 for N. Zone and starts are those of the rule, unless they
// are given. An error is a *weir.InvalidError.
func ParseQuota(limits []string, burst int64, zone, starts string) (Quota, error) {
	switch {
	case len(limits) == 0:
		return Quota{}, invalidQuota("limit", "required; write for example 100/1m, or unlimited")
	case len(limits) > maxRates:
		return Quota{}, invalidQuota("limits", "%d limits exceed the maximum of %d, because every request is charged against each; remove some", len(limits), maxRates)
	case len(limits) == 1 && limits[0] == unlimited && burst != 0:
		return Quota{}, invalidQuota("burst", "an unlimited quota has no burst; remove it")
	case len(limits) == 1 && limits[0] == unlimited && (zone != "" || starts != ""):
		return Quota{}, invalidQuota("limit", "an unlimited quota has no periods; remove zone and starts")
	case len(limits) == 1 && limits[0] == unlimited:
		return Quota{Unlimited: true}, nil
	}
	q := Quota{Burst: burst, Zone: zone, Starts: starts}
	for _, text := range limits {
		if n, ok := strings.CutPrefix(text, concurrency+" "); ok {
			if err := q.parseConcurrency(n); err != nil {
				return Quota{}, err
			}
			continue
		}
		if len(text) > maxText {
			return Quota{}, invalidQuota("limit", "it has %d bytes; write for example 100/1m", len(text))
		}
		rate, err := ParseRate(text)
		if err != nil {
			return Quota{}, invalidQuota("limit", "%v", err)
		}
		if slices.ContainsFunc(q.Rates, func(r Rate) bool { return r.Period == rate.Period }) {
			return Quota{}, invalidQuota("limits", "%s", samePeriod(rate.Period))
		}
		q.Rates = append(q.Rates, rate)
	}
	if len(q.Rates) == 0 && (burst != 0 || zone != "" || starts != "") {
		return Quota{}, invalidQuota("limit", "burst, zone and starts are for rates such as 100/1m, and there is none; remove them")
	}
	if err := q.validateCalendar(); err != nil {
		return Quota{}, err
	}
	return q, nil
}

// Texts returns the limits in the notation of ParseQuota.
func (q Quota) Texts() []string {
	if q.Unlimited {
		return []string{unlimited}
	}
	texts := textsOf(q.Rates)
	if q.Concurrency > 0 {
		texts = append(texts, concurrency+" "+strconv.FormatInt(q.Concurrency, 10))
	}
	return texts
}

// Compile returns the limits that a client of the rule would have with another quota, none
// if that is unlimited. The client keeps its usage under each limit whose period does
// not change. An error is a *weir.InvalidError. Under a rule with levels, use CompileFor.
func (c *Entry) Compile(q Quota) ([]*weir.Compiled, error) { return c.CompileFor("", q) }

// CompileFor is Compile for the client with this identity.
func (c *Entry) CompileFor(identity string, q Quota) ([]*weir.Compiled, error) {
	compiled, err := (&compiler{limits: map[weir.Limit]*weir.Compiled{}}).quota(c.Rule, c.Rule.quotaAt(c.Level(identity)), q)
	if err != nil {
		return nil, err
	}
	for _, limit := range compiled {
		if cost := max(c.Cost, 1); cost > limit.Capacity() && limit.Algorithm() != weir.InFlight {
			return nil, invalidQuota("limit", "%s", tooCostly(cost, limit.Capacity()))
		}
		if wrong := c.tooSmall(limit); wrong != "" {
			return nil, invalidQuota("limit", "%s", wrong)
		}
	}
	return compiled, nil
}

func invalidQuota(field, format string, args ...any) error {
	return &weir.InvalidError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// samePeriod and tooCostly say what is wrong with a quota, wherever it stands.
func samePeriod(period time.Duration) string {
	return fmt.Sprintf("another limit has the same period %s, and the two would share their usage; keep the smaller one", notation.FormatDuration(period))
}

func tooCostly(cost, capacity int64) string {
	return fmt.Sprintf("a request costs %d, but at most %d are allowed at once, so every request would be denied; lower the cost, or raise the limit or the burst", cost, capacity)
}

// unlimited is how a quota without limit is written.
const unlimited = "unlimited"

// placedQuota is a quota and where its parts stand.
type placedQuota struct {
	Quota
	whose               string // what messages begin with: nothing, or "tiers: pro: "
	at                  document.Position
	rates               []document.Position
	burst, zone, starts *document.Element
	lease               *document.Element
}

// levelFields are of a level in a rule or in a tier.
var levelFields = newTable(
	field[Quota]{"limit", nil, func(q *Quota) *document.Element {
		switch {
		case len(q.Rates) == 1:
			return document.NewText(q.Rates[0].String())
		case len(q.Rates) == 0 && q.Unlimited:
			return document.NewText(unlimited)
		}
		return nil
	}},
	field[Quota]{"limits", nil, func(q *Quota) *document.Element {
		if len(q.Rates) < 2 {
			return nil
		}
		return document.NewList(textsOf(q.Rates))
	}},
	integerField("burst", "E013", 1, weir.MaxUnits, 0, func(q *Quota) *int64 { return &q.Burst }),
	field[Quota]{"zone", (*parser).zone, func(q *Quota) *document.Element { return unless("", q.Zone, document.NewText) }},
	field[Quota]{"starts", (*parser).starts, func(q *Quota) *document.Element { return unless("", q.Starts, startElement) }},
	integerField("concurrency", "E035", 1, weir.MaxLogUnits, 0, func(q *Quota) *int64 { return &q.Concurrency }),
	leaseField(func(q *Quota) *time.Duration { return &q.Lease }),
)

// quotaFields are of a tier or an override, and, except the priority and the lease, also of a rule.
var quotaFields = newTable(slices.Concat(
	levelFields.fields[:2],
	[]field[Quota]{{"levels", nil, func(q *Quota) *document.Element { return quotasElement(q.Levels, levelFields) }}},
	levelFields.fields[2:6],
	[]field[Quota]{wordField("priority", ParsePriority, func(q *Quota) *Priority { return &q.Priority })},
	levelFields.fields[6:],
)...)

// ofQuota is a field of a rule that is one of its default quota.
func ofQuota(name string) field[Rule] {
	write := quotaFields.fields[slices.Index(quotaFields.names, name)].write
	return field[Rule]{name: name, write: func(r *Rule) *document.Element { return write(&r.Quota) }}
}

// quotasElement writes a quota that is nothing but a limit as that.
func quotasElement(quotas map[string]Quota, fields *fieldTable[Quota]) *document.Element {
	e := &document.Element{Kind: document.Mapping}
	for _, name := range slices.Sorted(maps.Keys(quotas)) {
		quota := quotas[name]
		q := fields.element(&quota)
		if limit := q.Get("limit"); limit != nil && len(q.Members) == 1 {
			q = limit
		}
		e.Add(name, q)
	}
	return e.OrNil()
}

// quotas reads what everybody gets, and then tiers and overrides.
func (p *parser) readQuotas(r *pending) {
	p.checkLevels(r, "", r.at, r.fields, true)
	usual, _ := p.quota("", r.at, r.fields)
	usual.Priority, usual.Lease = 0, 0 // these are the rule's
	r.quotas = append(r.quotas, usual)
	r.quotas[0].Levels = p.quotasByName(r, r.fields["levels"], "levels", maxName, levelFields.names)
	r.Quota = r.quotas[0].Quota
	r.Tiers = p.quotasByName(r, r.fields["tiers"], "tiers", maxName, quotaFields.names)
	r.Overrides = p.quotasByName(r, r.fields["overrides"], "overrides", maxText, quotaFields.names)
	p.checkOverrides(r)
}

// quotasByName reads tiers, overrides or levels, which have some fields.
func (p *parser) quotasByName(r *pending, e *document.Element, field string, most int, known []string) map[string]Quota {
	if e != nil && e.Kind != document.Mapping {
		p.errorf("E006", e.Position, field, "this is %s; write names and limits, as in {name: 100/1m}", e.Describe())
	}
	if e == nil || len(e.Members) == 0 {
		return nil
	}
	if p.quotas += len(e.Members); p.quotas > MaxOverrides {
		p.errorf("E002", e.Position, field, "%d tiers, overrides and levels exceed the maximum of %d; put clients into tiers instead of giving each an override", p.quotas, MaxOverrides)
		return nil
	}
	quotas := make(map[string]Quota, len(e.Members))
	r.quotas = slices.Grow(r.quotas, len(e.Members))
	for _, m := range e.Members {
		name, ok := p.text(m.Name, field+": the name", most)
		if !ok {
			continue
		}
		whose := field + ": " + document.Clip(name, maxName) + ": "
		if field == "overrides" && tellsSecret(r.Key, name) {
			p.quoter.Hide(m.Name.Position, name[strings.IndexByte(name, ':')+1:])
			whose = field + ": "
		}
		f := fields{"limit": m.Value}
		if m.Value.Kind == document.Mapping {
			f = p.fields(m.Value, strings.TrimSuffix(whose, ": "), known)
		}
		ofLevel := strings.HasSuffix(field, "levels")
		if ofLevel {
			p.useLevel("E040", field+": "+name, m.Name, errNoLevel)
		} else {
			p.checkLevels(r, whose, m.Name.Position, f, field == "tiers")
		}
		q, ok := p.quota(whose, m.Name.Position, f)
		if !ofLevel {
			q.Levels = p.quotasByName(r, f["levels"], whose+"levels", maxName, levelFields.names)
		}
		if ok {
			r.quotas = append(r.quotas, q)
		}
		quotas[name] = q.Quota
	}
	return quotas
}

// quota reads the fields of a quota.
func (p *parser) quota(whose string, at document.Position, f fields) (q placedQuota, ok bool) {
	q = placedQuota{whose: whose, at: at, burst: f["burst"], zone: f["zone"], starts: f["starts"], lease: f["lease"]}
	before := p.found()
	one, many := f["limit"], f["limits"]
	switch {
	case f["levels"] != nil:
		p.checkBesideLevels(whose, f)
		quotaFields.readAll(p, f, whose, &q.Quota)
		return q, p.found() == before
	case one != nil && many != nil:
		p.errorf("E010", many.Position, whose+"limits", "cannot be combined with limit; write one of the two, such as limits: [3/1m, 20/1h]")
	case one != nil:
		p.limit(&q, one)
	case many != nil:
		p.limits(&q, many)
	case f["concurrency"] == nil:
		p.errorf("E007", at, whose+"limit", "required; write for example limit: 100/1m, or concurrency: 20")
	}
	quotaFields.readAll(p, f, whose, &q.Quota)
	if e := f["concurrency"]; e != nil && q.Unlimited {
		p.errorf("E010", e.Position, whose+"concurrency", "an unlimited quota has no concurrency; remove limit: unlimited")
	}
	for _, field := range []string{"burst", "zone", "starts", "lease"} {
		switch e := f[field]; {
		case e == nil || whose == "" && field != "burst": // those of the rule are for its tiers, too
		case q.Unlimited && field == "burst":
			p.errorf("E010", e.Position, whose+field, "an unlimited quota has no burst; remove it")
		case q.Unlimited:
			p.errorf("E010", e.Position, whose+field, "an unlimited quota has no periods; remove it")
		case one == nil && many == nil && f["concurrency"] != nil:
			p.errorf("E010", e.Position, whose+field, "it is for a limit beside it, and there is none; add one, or remove it")
		}
	}
	return q, p.found() == before
}

func (p *parser) limit(q *placedQuota, e *document.Element) {
	if e.Kind == document.List {
		p.errorf("E006", e.Position, q.whose+"limit", "this is a list; rename the field to limits")
		return
	}
	if e.Kind == document.Text && e.Text == unlimited {
		q.Unlimited = true
		return
	}
	p.rate(q, "limit", e)
}

func (p *parser) limits(q *placedQuota, e *document.Element) {
	if e.Kind != document.List {
		p.errorf("E006", e.Position, q.whose+"limits", "this is %s; write a list, as in [3/1m, 20/1h], or rename the field to limit", e.Describe())
		return
	}
	if len(e.Items) == 0 {
		p.errorf("E006", e.Position, q.whose+"limits", "the list is empty; write at least one limit, as in [3/1m, 20/1h]")
	}
	if len(e.Items) > maxRates {
		p.errorf("E013", e.Position, q.whose+"limits", "%d limits exceed the maximum of %d, because every request is charged against each; remove some", len(e.Items), maxRates)
		return
	}
	for _, item := range e.Items {
		p.rate(q, "limits", item)
	}
}

// rate reads N/period.
func (p *parser) rate(q *placedQuota, field string, e *document.Element) {
	text, ok := p.text(e, q.whose+field, maxText)
	if !ok {
		return
	}
	rate, err := ParseRate(text)
	if err != nil {
		p.errorf("E013", e.Position, q.whose+field, "%s", err)
		return
	}
	q.Rates = append(q.Rates, rate)
	q.rates = append(q.rates, e.Position)
}

// ParseRate parses "100/1m", "5/minute", "20usd/day", "20eur/day" or "$20/day".
func ParseRate(text string) (Rate, error) {
	if strings.ContainsAny(text, " \t") {
		return Rate{}, errors.New("it has more than N/period; write for example 100/1m, without spaces, and burst and other options as separate fields")
	}
	if text == unlimited {
		return Rate{}, errors.New("unlimited cannot be combined with limits; write limit: unlimited, or remove it")
	}
	if notation.Nearest(text, []string{unlimited}) != "" {
		return Rate{}, fmt.Errorf("%s is not a rate; did you mean %q?", document.Quote(text), unlimited)
	}
	micros, currency, period, err := parseMoney(text)
	if err != nil {
		return Rate{}, err
	}
	if currency != "" {
		text = micros + "/" + period
	}
	// What is wrong for a fixed window is wrong for any algorithm; the rest is
	// found when the whole limit is known.
	l, err := weir.ParseLimit(weir.FixedWindow.String() + " " + text)
	switch {
	case err != nil && currency != "":
		return Rate{}, errors.New(inMoney(reason(err), micros, currency))
	case err != nil:
		return Rate{}, errors.New(reason(err))
	}
	return Rate{l.N, l.Period, currency}, nil
}

// String returns the rate in the notation of ParseRate.
func (r Rate) String() string {
	if r.Currency != "" {
		return r.moneyString()
	}
	return weir.Limit{N: r.N, Period: r.Period}.Rate()
}

func textsOf[T fmt.Stringer](all []T) []string {
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = one.String()
	}
	return texts
}

// reason is what package weir says is wrong, without its name.
func reason(err error) string {
	if invalid, ok := errors.AsType[*weir.InvalidError](err); ok {
		return invalid.Reason
	}
	return err.Error()
}
