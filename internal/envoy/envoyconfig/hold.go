package envoyconfig

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/rule"
)

// Hold says that two calls for one request belong together: one begins a hold on an estimate, and one
// ends it with what was used.
type Hold struct {
	// ID is the key of the entry that names the hold. It is no part of the counter's key.
	ID string

	// End is an entry that only calls have that end a hold. Without a key, a call whose descriptor has an
	// addend of 0 begins one, and any other ends one.
	End Entry

	// Reserve is how many units are reserved. 0 is the addend of the call that begins.
	Reserve int64

	// TTL is after which time a hold expires, and OnExpiry what becomes of its units then.
	TTL      time.Duration
	OnExpiry rule.Expiry
}

// DefaultHoldTTL is longer than that of other holds, because nobody extends one of Envoy's.
const DefaultHoldTTL = 10 * time.Minute

// Begins reports whether a call that the query was found for begins a hold, by the addend of its descriptor, if
// it has one.
func (h *Hold) Begins(q *Query, addend int64, explicit bool) bool {
	if h.End.Key == "" {
		return explicit && addend == 0
	}
	return !q.Ends
}

// take removes the entries that name a hold and its end from a list. It returns false if there are others
// that no descriptor has.
func (h *Hold) take(q *Query) bool {
	kept := q.Entries[:0]
	for i, e := range q.Entries {
		switch {
		case e.Key == h.ID && q.ID == "":
			q.ID = e.Value
		case h.End.Key != "" && e == h.End:
			q.Ends = true
		case slices.Contains(q.beside, i):
			return false
		default:
			kept = append(kept, e)
		}
	}
	clear(q.Entries[len(kept):])
	q.Entries = kept
	return true
}

// String returns it as it is written in a file.
func (h *Hold) String() string {
	text := "hold: {id: " + h.ID
	if h.End.Key != "" {
		text += fmt.Sprintf(", end: {%s: %s}", h.End.Key, h.End.Value)
	}
	text += "}"
	if h.Reserve > 0 {
		text += fmt.Sprintf(", reserve: %d", h.Reserve)
	}
	return text + fmt.Sprintf(", hold_ttl: %s, on_expiry: %s", notation.FormatDuration(h.TTL), h.OnExpiry)
}

// ParseHolds reads holds for descriptors that cannot say it themselves, as in
//
//	request_id=4000,end=phase:done,hold_ttl=10m,on_expiry=release; rule-0-match-1=500
//
// the key of the entry that names the hold, how many units are reserved, and options. A hold is for all
// descriptors with a limit that have this key, or that are below one.
func ParseHolds(text string) ([]Hold, error) {
	all, err := notation.ParseSettings(text)
	if err != nil {
		return nil, err
	}
	var holds []Hold
	for _, s := range all {
		h := Hold{ID: s.Name, TTL: DefaultHoldTTL}
		if slices.ContainsFunc(holds, func(other Hold) bool { return other.ID == h.ID }) {
			return nil, fmt.Errorf("%s is given twice; write it once", document.Quote(h.ID))
		}
		if h.Reserve, err = strconv.ParseInt(s.Value, 10, 64); err != nil || h.Reserve < 1 || h.Reserve > weir.MaxUnits {
			return nil, fmt.Errorf("%s: %s is not a number of units; write how many to reserve, as in %s=4000", document.Quote(h.ID), document.Quote(s.Value), h.ID)
		}
		for _, o := range s.Options {
			if err := h.set(o.Name, o.Value); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", document.Quote(h.ID), o.Name, err)
			}
		}
		holds = append(holds, h)
	}
	return holds, nil
}

func (h *Hold) set(option, value string) (err error) {
	switch option {
	case "end":
		var ok bool
		if h.End.Key, h.End.Value, ok = strings.Cut(value, ":"); !ok || h.End.Key == "" || h.End.Value == "" || h.End.Key == h.ID {
			return fmt.Errorf("%s is not another entry; write a key and a value, as in phase:done", document.Quote(value))
		}
		return nil
	case "hold_ttl":
		return h.setTTL(value)
	case "on_expiry":
		return h.setExpiry(value)
	}
	return fmt.Errorf("the option is unknown; use end, hold_ttl or on_expiry")
}

func (h *Hold) setTTL(text string) (err error) {
	if h.TTL, err = notation.ParseDuration(text); err == nil && (h.TTL < time.Second || h.TTL > weir.MaxHoldTTL) {
		err = fmt.Errorf("%s is not a time that a hold of Envoy can last; write 1s to 24h", notation.FormatDuration(h.TTL))
	}
	return err
}

func (h *Hold) setExpiry(text string) (err error) {
	h.OnExpiry, err = rule.ParseExpiry(text)
	return err
}

var (
	holdFields  = []string{"id", "end"}
	besideHolds = []string{"reserve", "hold_ttl", "on_expiry"} // which need one
)

// hold reads what a descriptor says of holds; nil if it charges.
func (p *parser) hold(f fields) *Hold {
	e := f["hold"]
	if e == nil {
		for _, name := range besideHolds {
			if f[name] != nil {
				p.errorf(f[name].Position, "%s: needs a hold; write for example hold: {id: request_id, end: {phase: done}}, or remove it", name)
			}
		}
		return p.flaggedHold(f)
	}
	own := p.fields(e, "hold", holdFields)
	if own == nil {
		return nil
	}
	h := &Hold{TTL: DefaultHoldTTL}
	var ok bool
	if h.ID, ok = p.text(own["id"], "hold: id"); ok && h.ID == "" {
		p.errorf(e.Position, "hold: id: required; write the key of the entry that names a request, such as request_id")
	}
	p.holdEnd(own["end"], h)
	h.Reserve, _ = p.number(f["reserve"], "reserve", 1, weir.MaxUnits)
	if own["end"] == nil && f["reserve"] == nil {
		p.errorf(e.Position, "reserve: required, because without hold: end: a call begins a hold if its addend is 0; write how many units to reserve")
	}
	for name, set := range map[string]func(string) error{"hold_ttl": h.setTTL, "on_expiry": h.setExpiry} {
		if text, ok := p.text(f[name], name); ok && text != "" {
			if err := set(text); err != nil {
				p.errorf(f[name].Position, "%s: %s", name, reason(err))
			}
		}
	}
	if f["charge"] != nil {
		p.errorf(f["charge"].Position, "charge: cannot be combined with hold, which charges what was used in full; remove it")
	}
	return h
}

// holdEnd reads the entry that only calls have that end a hold.
func (p *parser) holdEnd(e *document.Element, h *Hold) {
	switch {
	case e == nil:
		return
	case e.Kind != document.Mapping || len(e.Members) != 1:
		p.errorf(e.Position, "hold: end: write one key and its value, as in {phase: done}")
		return
	}
	h.End.Key = e.Members[0].Name.Text
	h.End.Value, _ = p.text(e.Members[0].Value, "hold: end: "+h.End.Key)
	if h.End.Key == h.ID || h.End.Key == "" || h.End.Value == "" {
		p.errorf(e.Position, "hold: end: write the key and the value of another entry, as in {phase: done}")
	}
}

// flaggedHold is the hold that a flag has for the descriptor whose keys are above, if it does not say itself how to charge.
func (p *parser) flaggedHold(f fields) *Hold {
	for i := range p.options.Holds {
		if h := &p.options.Holds[i]; f["charge"] == nil && slices.Contains(p.keys, h.ID) {
			return h
		}
	}
	return nil
}

// addHold lets lists of entries have those that are about a hold, besides those of its descriptor.
func (d *Domain) addHold(h *Hold) {
	if h == nil {
		return
	}
	for _, key := range []string{h.ID, h.End.Key} {
		if key != "" && !slices.Contains(d.beside, key) {
			d.beside = append(d.beside, key)
		}
	}
}

// checkHold reports what a hold cannot do with the limits of its descriptor.
func (p *parser) checkHold(f fields, n *Node) {
	if n.Hold == nil {
		return
	}
	for _, l := range n.terms[0][0].Limits {
		if n.Hold.Reserve <= l.Capacity() {
			continue
		}
		const format = "reserve: %d exceeds the limit of %d, so every request is denied; reserve less"
		if e := f["reserve"]; e != nil {
			p.errorf(e.Position, format, n.Hold.Reserve, l.Capacity())
		} else {
			p.warnf(document.Position{}, format, n.Hold.Reserve, l.Capacity())
		}
		return
	}
}
