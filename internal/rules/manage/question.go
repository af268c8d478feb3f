package manage

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/rule"
)

// Bounds on a question.
const (
	MaxQuestion = 64 << 10 // bytes in all
	MaxEntries  = 100      // of headers, cookies, query and attributes, each
	MaxWord     = 1 << 10  // bytes of a name, a user, a key, a host
	MaxText     = 8 << 10  // bytes of a path, and of a value in a map
)

// Question is a client's description of a request. Omitted fields are unknown.
type Question struct {
	rule.Request // IP and Values are set by Read

	Headers, Cookies, Parameters map[string]string
}

// Read checks the fields and completes the request. The address is the text that the client
// sent.
func (q *Question) Read(ip string) error {
	if err := q.bounds(ip); err != nil {
		return err
	}
	q.IP = netip.Addr{}
	if ip != "" {
		var err error
		if q.IP, err = netip.ParseAddr(ip); err != nil {
			return fault("ip", "%q is not an address; send one such as 203.0.113.7 or 2001:db8::1, without a port.", ip)
		}
	}
	path, _, _ := strings.Cut(q.Path, "?")
	if path != "" && path[0] != '/' || path == "" && q.Path != "" {
		return fault("path", "must begin with a slash; send for example /api/login.")
	}
	q.Path, q.Values = path, q
	return q.canonicalHeaders()
}

func fault(field, format string, args ...any) error {
	return &FieldError{field, field + ": " + fmt.Sprintf(format, args...)}
}

// IsMisstated reports whether a field of a request is invalid, and not that the rules cannot be
// applied to it.
func IsMisstated(err *weir.InvalidError) bool { return err.Field != "ops" }

// Priority parses the priority of a request; "" is none.
func Priority(name string) (p rule.Priority, err error) {
	if err := p.UnmarshalText([]byte(name)); err != nil {
		return 0, fault("priority", "%s", Ended(err.Error()))
	}
	return p, nil
}

// CheckClient reports whether the key and the tier of a client are valid. The error uses the
// example of a key, and names the call whose answers contain such keys.
func CheckClient(key, tier, example, answer string) error {
	switch {
	case key == "":
		return fault("key", "required; send the key of a client, such as %s, as %s returns it.", example, answer)
	case len(key) > weir.MaxKeyLen:
		return fault("key", "%d bytes exceed the maximum of %d; send the key as %s returns it.", len(key), weir.MaxKeyLen, answer)
	case len(tier) > MaxWord:
		return fault("tier", "%d bytes exceed the maximum of %d; send a tier of a rule.", len(tier), MaxWord)
	}
	return nil
}

// ClientName returns the name of a client in a field as rules count it.
func ClientName(field, text string) (string, error) {
	if len(text) > MaxWord {
		return "", fault(field, "%d bytes exceed the maximum of %d; send less.", len(text), MaxWord)
	}
	name, err := rule.ClientName(text)
	if err != nil {
		return "", fault(field, "%s", Ended(err.Error()))
	}
	return name, nil
}

// bounds reports the first field that is too long or out of range.
func (q *Question) bounds(ip string) error {
	size := 0
	for _, f := range [...]struct {
		name, value string
		most        int
	}{
		{"ip", ip, MaxWord}, {"user", q.User, MaxWord}, {"api_key", q.APIKey, MaxWord}, {"tier", q.Tier, MaxWord},
		{"method", q.Method, MaxWord}, {"host", q.Host, MaxWord}, {"path", q.Path, MaxText},
	} {
		if len(f.value) > f.most {
			return fault(f.name, "%d bytes exceed the maximum of %d; send less.", len(f.value), f.most)
		}
		size += len(f.value)
	}
	for _, f := range [...]struct {
		name   string
		values map[string]string
	}{
		{"headers", q.Headers}, {"cookies", q.Cookies}, {"query", q.Parameters}, {"attributes", q.Attributes},
	} {
		if len(f.values) > MaxEntries {
			return fault(f.name, "%d entries exceed the maximum of %d; send only those that rules use.", len(f.values), MaxEntries)
		}
		for name, value := range f.values {
			if len(name) > MaxWord || len(value) > MaxText {
				return fault(f.name, "a name has at most %d bytes and a value %d; send less.", MaxWord, MaxText)
			}
			if size += len(name) + len(value); size > MaxQuestion {
				return fault(f.name, "the request has more than %d bytes in total; send only those that rules use.", MaxQuestion)
			}
		}
	}
	switch {
	case q.Cost < 0:
		return fault("cost", "%d is negative, and a check cannot refund; send at least 1, or leave it out to use the cost of the rules.", q.Cost)
	case q.Cost > weir.MaxUnits:
		return fault("cost", "%d is more than any limit allows; send at most %d.", q.Cost, int64(weir.MaxUnits))
	}
	return CheckUnits("cost", q.Costs, 1)
}

// canonicalHeaders changes the names of headers to their canonical form, which rules use.
// Usually they already have it.
func (q *Question) canonicalHeaders() error {
	odd := false
	for name := range q.Headers {
		odd = odd || http.CanonicalHeaderKey(name) != name
	}
	if !odd {
		return nil
	}
	canonical := make(map[string]string, len(q.Headers))
	for name, value := range q.Headers {
		name = http.CanonicalHeaderKey(name)
		if _, twice := canonical[name]; twice {
			return fault("headers", "%s is given twice, in upper and lower case; send it once.", name)
		}
		canonical[name] = value
	}
	q.Headers = canonical
	return nil
}

// Header implements rule.Values.
func (q *Question) Header(name string, from int) (string, int) {
	return rule.OneValue(q.Headers[name], from)
}

// Cookie implements rule.Values.
func (q *Question) Cookie(name string, from int) (string, int) {
	return rule.OneValue(q.Cookies[name], from)
}

// Query implements rule.Values.
func (q *Question) Query(name string, from int) (string, int) {
	return rule.OneValue(q.Parameters[name], from)
}

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
func (n CounterName) Key(field func(string) string) (counter.Key, error) {
	zone, err := Zone(n.Zone, field("zone"))
	if err != nil {
		return counter.Key{}, err
	}
	key := counter.Key{Name: n.Name, Group: n.Group, Window: n.Window, Zone: zone, Distinct: n.Distinct}
	return key, Invalid(counter.ValidateKeys([]counter.Key{key}), field)
}

// Zone returns the time zone with an IANA name; nil is UTC, for "".
func Zone(name, field string) (*time.Location, error) {
	if name == "" {
		return nil, nil
	}
	found, err := notation.LoadZone(name)
	if err != nil {
		return nil, fault(field, "%v.", err)
	}
	return found, nil
}

// CheckDelta checks one addition of several, so that the error names which.
func CheckDelta(d counter.Delta, field func(string) string) error {
	if err := CheckNames(field("members"), d.Members); err != nil {
		return err
	}
	return Invalid(counter.ValidateAdd([]counter.Delta{d}), field)
}

// CheckSetting checks one new value of several. Clients call it value.
func CheckSetting(s counter.Setting, field func(string) string) error {
	return Invalid(counter.ValidateSet([]counter.Setting{s}), func(name string) string {
		if name == "to" {
			name = "value"
		}
		return field(name)
	})
}

// CheckSample checks the values of one distribution of several.
func CheckSample(s counter.Sample, field func(string) string) error {
	return Invalid(counter.ValidateObserve([]counter.Sample{s}), field)
}

// CheckNames checks a list of names.
func CheckNames(list string, all []string) error {
	for i, name := range all {
		if err := Invalid(counter.ValidateKeys([]counter.Key{{Name: name}}), Item(list, i)); err != nil {
			return err
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

// Invalid returns what is wrong by a check of a lower package, with the field as the client calls
// it; nil if nothing is.
func Invalid(err error, field func(string) string) error {
	if found, ok := errors.AsType[*weir.InvalidError](err); ok {
		return fault(field(found.Field), "%s", Ended(found.Reason))
	}
	return nil
}

// MaxCosts is the maximum number of units in a cost or in what was used.
const MaxCosts = 20

// CheckUnits reports why numbers by unit are invalid.
func CheckUnits(field string, numbers map[string]int64, least int64) error {
	if len(numbers) > MaxCosts {
		return fault(field, "%d units exceed the maximum of %d; send only those that rules have.", len(numbers), MaxCosts)
	}
	for unit, n := range numbers {
		err := rule.ValidateUnit(unit)
		switch {
		case err != nil:
			return fault(field, "%v.", err)
		case unit == "":
			return fault(field, "a unit is empty; send the unit of a rule, such as tokens.")
		case n < least || n > weir.MaxUnits:
			return fault(field, "%s: %d is out of range; send %d to %d.", unit, n, least, int64(weir.MaxUnits))
		}
	}
	return nil
}

// CheckUsed reports why a number of units that were used is invalid.
func CheckUsed(used int64) error {
	if used < 0 || used > weir.MaxUnits {
		return fault("used", "%d is out of range; send 0 to %d.", used, int64(weir.MaxUnits))
	}
	return nil
}

// HoldOf parses the id of a hold.
func HoldOf(text string) (weir.HoldID, error) {
	if text == "" {
		return weir.HoldID{}, fault("hold", "required; send the hold that the reservation returned.")
	}
	id, err := weir.ParseHoldID(text)
	if err != nil {
		return id, fault("hold", "it is not the id of a hold; send the one that the reservation returned.")
	}
	return id, nil
}

// TTL reads the time after which a hold expires; 0 is the default.
func TTL(ms int64) (time.Duration, error) {
	if ms < 0 || ms > weir.MaxHoldTTL.Milliseconds() {
		return 0, fault("ttl_ms", "%d is out of range; send 1 to %d, or leave it out for %d.", ms, weir.MaxHoldTTL.Milliseconds(), weir.DefaultHoldTTL.Milliseconds())
	}
	return time.Duration(ms) * time.Millisecond, nil
}
