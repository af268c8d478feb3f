package httpapi

import (
	"encoding/json"
	"reflect"
)

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

// UnmarshalJSON implements json.Unmarshaler.
func (a *Amount) UnmarshalJSON(text []byte) error {
	*a = Amount{}
	if text[0] != '{' {
		return json.Unmarshal(text, &a.Units)
	}
	// A number that somebody does not know is null in JSON. It must not be taken for 0.
	var all map[string]*int64
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	a.ByUnit = make(map[string]int64, len(all))
	for unit, n := range all {
		if n == nil {
			return &json.UnmarshalTypeError{Value: "null", Type: reflect.TypeFor[int64]()}
		}
		a.ByUnit[unit] = *n
	}
	return nil
}
