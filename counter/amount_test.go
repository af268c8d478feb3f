package counter_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/counter"
)

func TestParseAmount(t *testing.T) {
	for _, c := range []struct {
		text string
		want counter.Amount
	}{
		{"0", 0}, {"-0", 0}, {"1", counter.One}, {"-1.5", -1_500_000}, {"0.000001", 1}, {"-0.000001", -1}, {"007.10", 7_100_000},
		{"9000000000000", counter.MaxAmount}, {"-9000000000000.000000", -counter.MaxAmount},
	} {
		if got, err := counter.ParseAmount(c.text); err != nil || got != c.want {
			t.Errorf("ParseAmount(%q) = %d, %v, want %d", c.text, int64(got), err, int64(c.want))
		}
	}
	for text, want := range map[string]string{
		"": "not an amount", "-": "not an amount", ".5": "not an amount", "1.": "not an amount", "+1": "not an amount", "1e3": "not an amount", "1,5": "not an amount", "1.-5": "not an amount", "--1": "not an amount",
		" 1": "not an amount", "0x10": "not an amount", "NaN": "not an amount", "1.0000001": "six decimals", "9000000000000.000001": "too large",
		strings.Repeat("9", 1000): "too large", "-9223372036854.775809": "too large",
	} {
		if got, err := counter.ParseAmount(text); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 200 {
			t.Errorf("ParseAmount(%.40q) = %v, %v, want %q", text, got, err, want)
		}
	}
}

// What is written is what is read, as text and in JSON.
func TestAmountRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := counter.Amount(rapid.Int64Range(-int64(counter.MaxAmount), int64(counter.MaxAmount)).Draw(t, "amount"))
		if got, err := counter.ParseAmount(a.String()); err != nil || got != a {
			t.Fatalf("%d is %q, which is %d, %v", int64(a), a, int64(got), err)
		}
		text, err := json.Marshal(map[string]counter.Amount{"a": a})
		if err != nil {
			t.Fatal(err)
		}
		var back map[string]counter.Amount
		if err := json.Unmarshal(text, &back); err != nil || back["a"] != a {
			t.Fatalf("%s is %v, %v", text, back, err)
		}
	})
	if got := counter.Amount(math.MinInt64).String(); got != "-9223372036854.775808" {
		t.Errorf("the least of all is %s", got)
	}
	for text, want := range map[string]counter.Amount{
		"1e-05": 10, "-1e-06": -1, "1.5E-5": 15, "12.5e-1": 1_250_000, "9e12": counter.MaxAmount, "-1.25e+1": -12_500_000, "1e0": counter.One, "0.00e-6": 0,
	} {
		if got := counter.Amount(5); json.Unmarshal([]byte(text), &got) != nil || got != want {
			t.Errorf("%s is %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{"1e-7", "1.5e-6", "1e13", "9.1e12", "1e-99999999999999999999", "1e999999999"} {
		if got := counter.Amount(5); json.Unmarshal([]byte(text), &got) == nil || got != 5 {
			t.Errorf("%s is %v", text, got)
		}
	}
	var same counter.Amount = 5
	if err := json.Unmarshal([]byte("null"), &same); err != nil || same != 5 {
		t.Errorf("null makes it %v, %v", same, err)
	}
	if err := json.Unmarshal([]byte(`"1"`), &same); err == nil || same != 5 {
		t.Errorf("a string makes it %v, %v", same, err)
	}
}

func TestAmountNumbers(t *testing.T) {
	for _, c := range []struct {
		float float64
		want  counter.Amount
	}{{0.1, 100_000}, {-2.5, -2_500_000}, {0.0000004, 0}, {0.0000005, 1}, {9e12, counter.MaxAmount}} {
		if got, err := counter.FromFloat(c.float); err != nil || got != c.want {
			t.Errorf("FromFloat(%v) = %v, %v", c.float, got, err)
		}
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 9.1e12, -1e300} {
		if got, err := counter.FromFloat(bad); err == nil {
			t.Errorf("FromFloat(%v) = %v", bad, got)
		}
	}
	if counter.Whole(-3) != -3*counter.One || counter.Whole(math.MaxInt64) <= counter.MaxAmount || counter.Whole(math.MinInt64) >= -counter.MaxAmount {
		t.Error("Whole is wrong")
	}
	for a, want := range map[counter.Amount]int64{0: 0, 499_999: 0, 500_000: 1, -499_999: 0, -500_000: -1, counter.Whole(7): 7, -1_500_000: -2} {
		if got := a.Round(); got != want {
			t.Errorf("%v rounds to %d", a, got)
		}
	}
	if got := counter.Amount(1_250_000).Float64(); got != 1.25 {
		t.Errorf("%v", got)
	}
}
