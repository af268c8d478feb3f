package rule

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/match"
)

// level is what a rule has for the clients of a level.
type level struct {
	name, prefix string // "org", "org:"
	quota        quota
	tiers        map[string]prioritized
}

// levelOf is the level of a client whom the rule counts; nil if the rule has no levels.
func (c *Entry) levelOf(identity string) *level {
	for i := range c.levels {
		if l := &c.levels[i]; strings.HasPrefix(identity, l.prefix) {
			return l
		}
	}
	return nil
}

// Level returns the name of the level of a client, which the result of [Entry.Identity] is; "" if the rule has no levels.
func (c *Entry) Level(identity string) string {
	if l := c.levelOf(identity); l != nil {
		return l.name
	}
	return ""
}

// Levels returns the names of the levels at which the rule counts, from the top down, which [Entry.Level] returns.
func (c *Entry) Levels() []string {
	names := make([]string, len(c.levels))
	for i := range c.levels {
		names[i] = c.levels[i].name
	}
	return names
}

// levelIdentities appends the clients of a request at all levels, from the top down; see [Hit.Identities].
func (c Hit) levelIdentities(dst []byte, ends []int, req *Request) ([]byte, []int, error) {
	begin, first := len(dst), len(ends)
	for i := range c.key[0].levels {
		p := &c.key[0].levels[i]
		for from := 0; from != match.Only; {
			start, next := len(dst), 0
			if dst, next = p.append(dst, req, from); next == 0 {
				dst = dst[:start]
				break
			}
			from = next
			switch dst = bound(dst, start); {
			case known(dst[begin:], begin, ends[first:]):
				dst = dst[:start]
			case len(ends)-first == MaxIdentities:
				return dst[:begin], ends[:first], &ValuesError{What: p.describe()}
			default:
				ends = append(ends, len(dst))
			}
		}
	}
	return dst, ends, nil
}

// isByLevel reports whether the rule counts at levels.
func (r *Rule) isByLevel() bool {
	return slices.ContainsFunc(r.Key, func(s Source) bool { return s.Kind == Levels })
}

// quotaAt is the default quota of a client at a level, or of any if the rule has none.
func (r *Rule) quotaAt(level string) Quota {
	if level == "" {
		return r.Quota
	}
	return r.Quota.Levels[level]
}

// levelNames are the levels that the rule limits, in an order.
func (r *Rule) levelNames(order []string) []string {
	all := map[string]Quota{}
	maps.Copy(all, r.Quota.Levels)
	for _, q := range r.Tiers {
		maps.Copy(all, q.Levels)
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a), slices.Index(order, b)), strings.Compare(a, b))
	})
}

// levelSource is what identifies a client of a level.
func levelSource(name string) Source {
	switch name {
	case sources.names[User]:
		return Source{Kind: User}
	case sources.names[APIKey]:
		return Source{Kind: APIKey}
	}
	return Source{Kind: Level, Name: name}
}

func newLevelParts(r *Rule, bits int, order []string) (parts []part, err error) {
	for _, name := range r.levelNames(order) {
		p, err := newPart(levelSource(name), bits)
		if err != nil {
			return nil, err
		}
		p.lead = p.prefix
		parts = append(parts, p)
	}
	return parts, nil
}

// compileLevels compiles the limits of each level, with those of tiers.
func (c *compiler) compileLevels(out *Entry) (err error) {
	r := out.Rule
	for i, name := range r.levelNames(c.levels) {
		l := level{name: name, prefix: out.key[0].levels[i].prefix, tiers: map[string]prioritized{}}
		usual, limited := r.Quota.Levels[name]
		if limited {
			if l.quota, err = c.quota(r, usual, usual); err != nil {
				return fmt.Errorf("levels: %s: %w", name, err)
			}
		}
		for tier, q := range r.Tiers {
			at, has := q.Levels[name]
			if q.Unlimited {
				at, has = q, true // at every level
			}
			if has {
				if l.tiers[tier], err = c.prioritized(r, usual, at); err != nil {
					return fmt.Errorf("tiers: %s: levels: %s: %w", tier, name, err)
				}
			}
		}
		out.levels = append(out.levels, l)
	}
	return nil
}

const levelsExample = "as in levels: {org: 5000000/month, user: 20000/day}"

var errNoLevel = errors.New("the document has no such level; add it to the list levels at the top of the document, or correct the name")

// validateLevel is for the name of a level in a document.
func validateLevel(name string) error {
	if s := levelSource(name); s.Kind == Level && !isLevelName(name) {
		return fmt.Errorf("%s cannot be the name of a level; %s", document.Quote(name), levelNames)
	}
	return nil
}

// validateLevels is for sets that were not parsed.
func validateLevels(all []string) error {
	if len(all) > MaxLine {
		return fmt.Errorf("%d levels exceed the maximum of %d; remove some", len(all), MaxLine)
	}
	for i, name := range all {
		if err := validateLevel(name); err != nil {
			return err
		}
		if slices.Contains(all[:i], name) {
			return fmt.Errorf("%s is given twice; write it once", name)
		}
	}
	return nil
}

func (r *Rule) validateLevels(declared []string) error {
	for _, s := range r.Key {
		if s.Kind == Level && !slices.Contains(declared, s.Name) {
			return fmt.Errorf("key: %s: %w", s.Name, errNoLevel)
		}
	}
	byLevel := r.isByLevel()
	switch {
	case byLevel && len(r.Key) > 1:
		return errors.New("key: levels cannot be combined with other parts; keep one or the other")
	case byLevel && len(r.Quota.Levels) == 0:
		return errors.New("levels: required, because the key is levels; write the limits of each level, " + levelsExample)
	}
	return errors.Join(r.Quota.validateLevels(byLevel, declared), validateEach(r.Tiers, byLevel, declared), validateEach(r.Overrides, false, declared))
}

func validateEach(quotas map[string]Quota, byLevel bool, declared []string) error {
	for _, q := range quotas {
		if byLevel && q.Unlimited && len(q.Levels) == 0 { // at every level
			continue
		}
		if err := q.validateLevels(byLevel, declared); err != nil {
			return err
		}
	}
	return nil
}

func (q Quota) validateLevels(byLevel bool, declared []string) error {
	itself := q.Unlimited || len(q.Rates) > 0 || q.Concurrency > 0
	for name, at := range q.Levels {
		switch {
		case !slices.Contains(declared, name):
			return fmt.Errorf("levels: %s: %w", name, errNoLevel)
		case !byLevel || itself || len(at.Levels) > 0 || at.Priority != 0:
			return errors.New("levels: they are for a rule or a tier with the key levels, instead of other limits, and have no levels and no priority themselves")
		}
	}
	if byLevel && itself {
		return errors.New("limit: the key is levels; write the limits of each level in levels")
	}
	return nil
}

// levelUse is where a rule has a level, which the document may name only later.
type levelUse struct {
	rule, field, code string
	name              placed[string]
	err               error // what is wrong if it does not
}

func (p *parser) useLevel(code, field string, e *document.Element, err error) {
	p.levelUses = append(p.levelUses, levelUse{p.report.rule, field, code, placed[string]{e.Text, e.Position}, err})
}

// readLevels reads the levels of the document.
func (p *parser) readLevels(e *document.Element) {
	if e == nil {
		return
	}
	if e.Kind != document.List {
		p.errorf("E006", e.Position, "levels", "this is %s; write a list with the names of the levels from the top down", e.Describe())
		return
	}
	for _, name := range p.texts(e, "levels", maxName) {
		p.set.Levels = append(p.set.Levels, name.Text)
		if err := validateLevels(p.set.Levels); err != nil {
			p.errorf("E040", name.Position, "levels", "%v", err)
			return
		}
	}
}

// checkLevelUses finds levels that the document does not have. A rule by itself can have any, if it is not meant to be something
// else.
func (p *parser) checkLevelUses() {
	for _, use := range p.levelUses {
		if slices.Contains(p.set.Levels, use.name.value) || p.single && validateLevel(use.name.value) == nil && (use.err == errNoLevel || sourceHint(use.name.value, "", false) == "") {
			continue
		}
		p.report.rule = use.rule
		p.errorf(use.code, use.name.at, use.field, "%v", use.err)
	}
	p.report.rule = ""
}

// checkLevels finds a quota that should have levels and has none, or the other way round. A tier can be unlimited at all.
func (p *parser) checkLevels(r *pending, whose string, at document.Position, f fields, may bool) {
	limit := f["limit"]
	switch e := f["levels"]; {
	case e == nil && may && whose != "" && r.isByLevel() && limit != nil && limit.Kind == document.Text && limit.Text == unlimited:
	case e == nil && may && r.isByLevel():
		p.errorf("E007", at, whose+"levels", "required, because the key is levels; write the limits of each level, %s", levelsExample)
		if f != nil {
			f["levels"] = &document.Element{Kind: document.Mapping, Position: at}
		}
	case e != nil && !may:
		p.errorf("E040", e.Position, whose+"levels", "an override is for one client, which has one level; write its limit")
	case e != nil && e.Kind == document.Mapping && len(e.Members) == 0:
		p.errorf("E006", e.Position, whose+"levels", "it is empty; write the limits of each level, %s", levelsExample)
	case e != nil && !r.isByLevel():
		p.errorf("E040", e.Position, whose+"levels", "it is for a rule with key: levels; write that, or remove it")
	}
}

// checkBesideLevels finds limits that stand beside levels.
func (p *parser) checkBesideLevels(whose string, f fields) {
	for _, field := range []string{"limit", "limits", "burst", "concurrency", "zone", "starts", "lease"} {
		if e := f[field]; e != nil && (whose != "" || field != "zone" && field != "starts" && field != "lease") {
			p.errorf("E010", e.Position, whose+field, "it cannot stand beside levels; write it for each level, %s", levelsExample)
		}
	}
}
