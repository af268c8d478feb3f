package queue

import (
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir"
)

func declare(t interface{ Fatal(...any) }, s Settings) *Terms {
	terms, err := Declare(map[string]Settings{"q": s})
	if err != nil {
		t.Fatal(err)
	}
	return terms["q"]
}

func TestDefaults(t *testing.T) {
	got := declare(t, Settings{N: 10, Period: time.Second})
	want := Terms{
		Settings: Settings{
			N: 10, Period: time.Second, Capacity: DefaultCapacity, MaxPayload: DefaultMaxPayload, Visibility: DefaultVisibility,
			MaxTries: DefaultMaxTries, Backoff: DefaultBackoff, MaxBackoff: DefaultMaxBackoff, MaxDead: DefaultMaxDead,
		},
		Rate: 1, Span: 100_000, VisibilityMicros: 30_000_000, BackoffMicros: 1_000_000, MaxBackoffMicros: 300_000_000,
	}
	if *got != want {
		t.Errorf("%+v\nwant\n%+v", *got, want)
	}
	if got := declare(t, Settings{N: 1, Period: 1000, Backoff: time.Hour}); got.MaxBackoff != time.Hour {
		t.Errorf("MaxBackoff = %v", got.MaxBackoff)
	}
}

// Settings that cannot be kept are rejected, with the field and a remedy.
func TestSettingsAreChecked(t *testing.T) {
	good := Settings{N: 1, Period: time.Second}
	for field, change := range map[string]func(*Settings){
		"limit":       func(s *Settings) { s.N = 0 },
		"period":      func(s *Settings) { s.Period = 0 },
		"capacity":    func(s *Settings) { s.Capacity = MaxCapacity + 1 },
		"max_payload": func(s *Settings) { s.MaxPayload = -1 },
		"visibility":  func(s *Settings) { s.Visibility = MaxVisibility + time.Second },
		"max_tries":   func(s *Settings) { s.MaxTries = MaxTries + 1 },
		"backoff":     func(s *Settings) { s.Backoff = 1 },
		"max_backoff": func(s *Settings) { s.Backoff, s.MaxBackoff = time.Minute, time.Second },
		"max_dead":    func(s *Settings) { s.MaxDead = MaxDead + 1 },
		"remember":    func(s *Settings) { s.Remember = -time.Second },
	} {
		s := good
		change(&s)
		_, err := Declare(map[string]Settings{"q": s})
		var invalid *weir.InvalidError
		if !errors.As(err, &invalid) || invalid.Field != field || !strings.HasPrefix(err.Error(), "queue q: ") {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, name := range []string{"", "a b", "{a}", "a:b", "é", "a\n", "a/b", strings.Repeat("x", MaxNameLen+1)} {
		if _, err := Declare(map[string]Settings{name: good}); err == nil || len(err.Error()) > 300 {
			t.Errorf("the name %.20q: %v", name, err)
		}
	}
	if _, err := Declare(map[string]Settings{"Mail-out_2.x": good, strings.Repeat("x", MaxNameLen): good}); err != nil {
		t.Error(err)
	}
}

// rates are common and unusual rates.
func rates() *rapid.Generator[Settings] {
	return rapid.Custom(func(t *rapid.T) Settings {
		return Settings{
			N:      rapid.OneOf(rapid.Int64Range(1, 100), rapid.Int64Range(1, 1<<30)).Draw(t, "N"),
			Period: time.Duration(rapid.OneOf(rapid.Int64Range(1, 1000), rapid.Int64Range(1, weir.MaxPeriod.Microseconds())).Draw(t, "Period")) * time.Microsecond,
		}
	})
}

// However items are asked for, ahead or late, and whatever the clock does: between any two
// releases there is room for all that lie between them.
func TestPaceIsNeverExceeded(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		terms := declare(r, rates().Draw(r, "rate"))
		gap := max(1, terms.Span/terms.Rate)
		var pace Pace
		var releases []weir.Micros
		now := weir.Micros(1 << 40)
		for range 60 {
			now += weir.Micros(rapid.OneOf(rapid.Int64Range(0, 2), rapid.Int64Range(0, 3*gap), rapid.Int64Range(gap, gap)).Draw(r, "pass"))
			ahead := weir.Micros(rapid.Int64Range(0, MaxAhead.Microseconds()).Draw(r, "ahead"))
			slot := terms.Slot(pace, now)
			if slot.Release() > now+ahead {
				continue
			}
			releases = append(releases, slot.Release())
			pace = terms.After(slot)
		}
		for i := range releases {
			for k := i + 1; k < len(releases); k++ {
				// (k−i) × Span/Rate lie between the exact slots, of which each is less
				// than a microsecond before its release.
				apart := int64(releases[k] - releases[i])
				if product(apart+1, terms.Rate).Cmp(product(int64(k-i), terms.Span)) <= 0 {
					r.Fatalf("%d releases within %d µs at %d/%v", k-i+1, apart, terms.N, terms.Period)
				}
			}
		}
	})
}

func product(a, b int64) *big.Int { return new(big.Int).Mul(big.NewInt(a), big.NewInt(b)) }

// A full queue leaves k × Period/N after the first, rounded up, for ever: nothing adds up.
func TestPaceDoesNotDrift(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		terms := declare(r, rates().Draw(r, "rate"))
		const first = weir.Micros(1 << 40)
		slot := terms.Slot(Pace{}, first)
		for k := range int64(200) {
			if k > 1<<62/terms.Span {
				break
			}
			want := first + weir.Micros((k*terms.Span+terms.Rate-1)/terms.Rate)
			if slot.Release() != want {
				r.Fatalf("release %d is at %d, want %d", k, slot.Release()-first, want-first)
			}
			if wait := terms.Wait(terms.Slot(Pace{}, first), first, k+1); wait != weir.Never && wait != time.Duration(want-first)*time.Microsecond {
				r.Fatalf("the wait of position %d is %v, want %v µs", k+1, wait, want-first)
			}
			slot = terms.Slot(terms.After(slot), want) // is asked for in the very instant
		}
	})
}

// A pace that was counted under another rate is not sooner than it was.
func TestPaceUnderAnotherRate(t *testing.T) {
	terms := declare(t, Settings{N: 7, Period: time.Second})
	p := terms.Slot(Pace{Next: 1000, Part: 1, Rate: 3}, 500)
	if (p != Pace{Next: 1001, Rate: 7}) {
		t.Errorf("%+v", p)
	}
	p = terms.Slot(Pace{Next: 1000, Part: 0, Rate: 3}, 500)
	if (p != Pace{Next: 1000, Rate: 7}) {
		t.Errorf("%+v", p)
	}
}

func TestBury(t *testing.T) {
	cause := errors.New("x")
	if err := Bury(cause); !errors.Is(err, cause) || err.Error() != "x" || !isBuried(err) {
		t.Errorf("%v", err)
	}
	if Bury(nil) != nil || isBuried(cause) {
		t.Error("what is not buried is")
	}
}
