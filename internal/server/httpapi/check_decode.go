package httpapi

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/weirhq/weir/internal/document"
)

// parse reads the request from JSON. Nearly all bodies are plain, and read in a tenth
// of the time that the library needs; what is not goes to the library, which also
// says what is wrong.
// If there is a place for the ttl, it is a reservation.
func (a *CheckRequest) parse(body []byte, ttl *int64) error {
	if a.quick(body, ttl) {
		return nil
	}
	*a = CheckRequest{}
	if ttl == nil {
		return decode(body, a)
	}
	var r ReserveRequest
	err := decode(body, &r)
	*a, *ttl = r.CheckRequest, r.TTLMS
	return err
}

// quick reads an object of which nothing needs a second thought: known fields, each
// once and in small letters, ASCII without escapes, whole numbers that are not
// negative. It reports whether it was one. Then the library would have read the same;
// a test compares the two.
func (a *CheckRequest) quick(body []byte, ttl *int64) bool {
	p := plainJSON{document.Scanner{Text: body}, string(body)}
	fields := [...]any{
		&a.IP, &a.User, &a.APIKey, &a.Tier, &a.Priority, &a.Method, &a.Host, &a.Path, &a.Charge,
		&a.Headers, &a.Cookies, &a.Query, &a.Attributes, &a.Cost, &a.Peek, ttl,
	}
	seen := uint16(0)
	ok := p.object(func(name string) bool {
		at := slices.Index(checkFields, name)
		if at < 0 || seen&(1<<at) != 0 {
			return false
		}
		seen |= 1 << at
		return p.value(fields[at])
	})
	return ok && p.AtEnd()
}

// checkFields are the names of the fields of CheckRequest and ReserveRequest, in the order of quick.
var checkFields = []string{
	"ip", "user", "api_key", "tier", "priority", "method", "host", "path", "charge",
	"headers", "cookies", "query", "attributes", "cost", "peek", "ttl_ms",
}

// plainJSON reads JSON of which every text is part of one copy. Each method reports whether the value was
// there, and plain.
type plainJSON struct {
	document.Scanner
	copy string
}

// value reads what a field takes.
func (p *plainJSON) value(into any) bool {
	switch into := into.(type) {
	case *map[string]string:
		return mapOf(p, into)
	case *Amount:
		if p.Peek() == '{' {
			return mapOf(p, &into.ByUnit)
		}
		return p.number(&into.Units)
	}
	return p.scalar(into)
}

// scalar reads a text, a number or a boolean, by the type of its place: if it were told how to read it, the
// place would escape to the heap.
func (p *plainJSON) scalar(into any) bool {
	switch into := into.(type) {
	case *string:
		return p.text(into)
	case *int64:
		return into != nil && p.number(into)
	case *bool:
		word, _ := p.Word()
		*into = string(word) == "true"
		return *into || string(word) == "false"
	}
	return false
}

func (p *plainJSON) text(into *string) bool {
	quoted, ok := p.String()
	for _, b := range quoted {
		if b < 0x20 || b >= 0x80 || b == '\\' {
			return false
		}
	}
	if ok {
		*into = p.copy[p.At-1-len(quoted) : p.At-1]
	}
	return ok
}

// number reads at most 18 digits, which an int64 holds.
func (p *plainJSON) number(into *int64) bool {
	digits, ok := p.Word()
	if !ok || len(digits) > 18 || len(digits) > 1 && digits[0] == '0' {
		return false
	}
	*into = 0
	for _, b := range digits {
		if b < '0' || b > '9' {
			return false
		}
		*into = 10**into + int64(b-'0')
	}
	return true
}

// object reads names, and what the function reads after each.
func (p *plainJSON) object(member func(name string) bool) bool {
	return p.Items('{', '}', func() bool {
		var name string
		return p.text(&name) && p.Next(':') && member(name)
	})
}

// mapOf reads an object whose values are all alike, and whose names are different.
func mapOf[T string | int64](p *plainJSON, into *map[string]T) bool {
	all := map[string]T{}
	*into = all
	return p.object(func(name string) bool {
		var v T
		_, twice := all[name]
		ok := p.scalar(&v) && !twice
		all[name] = v
		return ok
	})
}

// Amount is a number of units: one for every rule, or one for each unit. In JSON it is a
// number, or an object such as {"tokens": 700}.
type Amount struct {
	Units  int64
	ByUnit map[string]int64 // nil if there is one for every rule
}

// IsZero reports whether nothing was given.
func (a Amount) IsZero() bool { return a.Units == 0 && a.ByUnit == nil }

// MarshalJSON implements json.Marshaler.
func (a Amount) MarshalJSON() ([]byte, error) {
	if a.ByUnit != nil {
		return json.Marshal(a.ByUnit)
	}
	return json.Marshal(a.Units)
}

// unitCount is a number of units whose name is known, which may be millionths of a currency; see [wanted].
type unitCount int64

// UnmarshalJSON implements json.Unmarshaler.
func (a *Amount) UnmarshalJSON(text []byte) error {
	*a = Amount{}
	if text[0] != '{' {
		return json.Unmarshal(text, &a.Units)
	}
	// A number that somebody does not know is null in JSON. It must not be taken for 0.
	var all map[string]*unitCount
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	a.ByUnit = make(map[string]int64, len(all))
	for unit, n := range all {
		if n == nil {
			return &json.UnmarshalTypeError{Value: "null", Type: reflect.TypeFor[unitCount]()}
		}
		a.ByUnit[unit] = int64(*n)
	}
	return nil
}
