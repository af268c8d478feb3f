package manage

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/zone"
)

// Details of errors of counters.
const (
	CounterRange   = "The counter would leave its range, so nothing was counted; count in larger units, or reset it earlier."
	CountersFull   = "The counters in memory are full, so nothing was counted: new names are rejected; raise --counter-capacity, shorten --counter-keep, or use fewer names."
	CountersGone   = "The store is unavailable; try again soon."
	CounterUnknown = "The store is unavailable, and the change may or may not have been made; check, or try again soon."
)

// CounterName names a counter, as clients do.
type CounterName struct {
	Name, Group string
	Window      counter.Window
	Zone        string // an IANA name; "" is UTC
	Distinct    bool
}

// Key returns the key of the counter. Field returns the name of a field of this counter in
// the call.
func (n CounterName) Key(field func(string) string) (counter.Key, *FieldError) {
	zone, bad := Zone(n.Zone, field("zone"))
	if bad != nil {
		return counter.Key{}, bad
	}
	key := counter.Key{Name: n.Name, Group: n.Group, Window: n.Window, Zone: zone, Distinct: n.Distinct}
	return key, invalid(counter.ValidateKeys([]counter.Key{key}), field)
}

// Zone returns the time zone with an IANA name; nil is UTC, for "".
func Zone(name, field string) (*time.Location, *FieldError) {
	if name == "" {
		return nil, nil
	}
	found, err := zone.Load(name)
	if err != nil {
		return nil, fault(field, "%v.", err)
	}
	return found, nil
}

// CheckDelta checks one addition of several, so that the error names which.
func CheckDelta(d counter.Delta, field func(string) string) *FieldError {
	if bad := CheckNames(field("members"), d.Members); bad != nil {
		return bad
	}
	return invalid(counter.ValidateAdd([]counter.Delta{d}), field)
}

// CheckSetting checks one new value of several. Clients call it value.
func CheckSetting(s counter.Setting, field func(string) string) *FieldError {
	return invalid(counter.ValidateSet([]counter.Setting{s}), func(name string) string {
		if name == "to" {
			name = "value"
		}
		return field(name)
	})
}

// CheckSample checks the values of one distribution of several.
func CheckSample(s counter.Sample, field func(string) string) *FieldError {
	return invalid(counter.ValidateObserve([]counter.Sample{s}), field)
}

// CheckNames checks a list of names.
func CheckNames(list string, all []string) *FieldError {
	for i, name := range all {
		if bad := invalid(counter.ValidateKeys([]counter.Key{{Name: name}}), Item(list, i)); bad != nil {
			return bad
		}
	}
	return nil
}

// Within returns the names of the fields of the i-th object of a list.
func Within(list string, i int) func(string) string {
	return func(field string) string { return fmt.Sprintf("%s[%d].%s", list, i, field) }
}

// Item returns the name of the i-th text of a list, whatever a lower package calls it.
func Item(list string, i int) func(string) string {
	return func(string) string { return fmt.Sprintf("%s[%d]", list, i) }
}

// DefaultWindows returns how many windows of counters a client reads that does not say:
// what has no windows has no past.
func DefaultWindows(keys []counter.Key) int {
	if slices.ContainsFunc(keys, func(k counter.Key) bool { return k.Window == counter.Ever }) {
		return 1
	}
	return 10
}

// invalid is what is wrong by a check of a lower package, with the field as the client calls
// it; nil if nothing is.
func invalid(err error, field func(string) string) *FieldError {
	if found, ok := errors.AsType[*weir.InvalidError](err); ok {
		return fault(field(found.Field), "%s.", found.Reason)
	}
	return nil
}
