package archive

import (
	"fmt"
	"testing"
)

// Who spends most is counted apart, of each currency for itself: a yen is no dollar.
func TestSpendersByCurrency(t *testing.T) {
	var f Frame
	add := func(currency string, n int, unit int64) {
		for i := range n {
			f.Spender(Spender{Rule: "spend", Currency: currency, Key: fmt.Sprintf("user:%04d", i)}).Add(&Spent{Requests: 1, Units: int64(i) * unit})
		}
	}
	add("jpy", 1500, 150_000_000)
	add("usd", 900, 1_000_000)
	add("eur", 100, 1_000_000)
	f.Trim()
	kept, least, sums := map[string]int{}, map[string]int64{}, map[string]int64{}
	for s, spent := range f.Spend {
		if sums[s.Currency] += spent.Units; s.Key != Other {
			kept[s.Currency]++
			least[s.Currency] = min(least[s.Currency], -spent.Units)
		}
	}
	for currency, want := range map[string]int{"jpy": 450, "usd": 450, "eur": 100} {
		if kept[currency] != want {
			t.Errorf("%d lines in %s are kept, want %d", kept[currency], currency, want)
		}
	}
	for currency, most := range map[string]int64{"jpy": 1499 * 150_000_000, "usd": 899_000_000, "eur": 99_000_000} {
		if -least[currency] != most {
			t.Errorf("the most in %s is %d, want %d", currency, -least[currency], most)
		}
	}
	if want := int64(1499 * 1500 / 2); sums["jpy"] != want*150_000_000 || sums["usd"] != 899*900/2*1_000_000 {
		t.Errorf("%v", sums)
	}
}
