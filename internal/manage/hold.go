package manage

import (
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// MaxCosts is the maximum number of units in a cost or in what was used.
const MaxCosts = 20

// CheckUnits reports why numbers by unit are invalid.
func CheckUnits(field string, numbers map[string]int64, least int64) *FieldError {
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
func CheckUsed(used int64) *FieldError {
	if used < 0 || used > weir.MaxUnits {
		return fault("used", "%d is out of range; send 0 to %d.", used, int64(weir.MaxUnits))
	}
	return nil
}

// HoldOf parses the id of a hold.
func HoldOf(text string) (weir.HoldID, *FieldError) {
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
func TTL(ms int64) (time.Duration, *FieldError) {
	if ms < 0 || ms > weir.MaxHoldTTL.Milliseconds() {
		return 0, fault("ttl_ms", "%d is out of range; send 1 to %d, or leave it out for %d.", ms, weir.MaxHoldTTL.Milliseconds(), weir.DefaultHoldTTL.Milliseconds())
	}
	return time.Duration(ms) * time.Millisecond, nil
}
