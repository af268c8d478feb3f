package check

import (
	"math"
	"slices"
	"time"
)

// Span is from one instant to another, both counted from the beginning of the run.
type Span struct {
	From time.Duration `json:"from"`
	To   time.Duration `json:"to"`
}

// Open is the end of what goes on.
const Open = time.Duration(math.MaxInt64)

func (s Span) meets(other Span) bool { return s.From <= other.To && other.From <= s.To }

// spans are in order and apart from one another.
type spans []Span

// add includes a span, and joins what then touches.
func (s spans) add(n Span) spans {
	at, _ := slices.BinarySearchFunc(s, n.From, func(one Span, from time.Duration) int {
		if one.To < from {
			return -1
		}
		return 1
	})
	end := at
	for end < len(s) && s[end].From <= n.To {
		n.From, n.To = min(n.From, s[end].From), max(n.To, s[end].To)
		end++
	}
	return slices.Replace(s, at, end, n)
}

// meeting are those that meet a span.
func (s spans) meeting(of Span) spans {
	first := len(s)
	for first > 0 && s[first-1].To >= of.From {
		first--
	}
	last := first
	for last < len(s) && s[last].From <= of.To {
		last++
	}
	return s[first:last]
}

// within is how much of a span they cover.
func (s spans) within(of Span) (covered time.Duration) {
	for _, one := range s.meeting(of) {
		covered += min(one.To, of.To) - max(one.From, of.From)
	}
	return covered
}

// lastBefore is when the last of them ended that began before the end of a span: no earlier
// than its beginning if they meet, and long ago if there is none.
func (s spans) lastBefore(of Span) (ended time.Duration, ok bool) {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i].From <= of.To {
			return min(s[i].To, of.To), true
		}
	}
	return 0, false
}
