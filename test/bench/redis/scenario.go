package redis

import (
	"fmt"

	"github.com/weirhq/weir/test/bench/internal/table"
)

// Scenario is one question to all contestants.
type Scenario struct {
	Keys     int
	Admitted bool // everything is, or everything is refused
	Callers  int  // goroutines that ask all the time
}

func (s Scenario) String() string {
	return fmt.Sprintf("%s, %s, %s", count(s.Callers, "caller"), count(s.Keys, "key"), s.outcome())
}

func (s Scenario) outcome() string {
	if s.Admitted {
		return "admitted"
	}
	return "refused"
}

// short is the title of a column: what is special about the scenario.
func (s Scenario) short() string {
	switch {
	case s.Callers == 1:
		return "one caller"
	case s.Admitted:
		return count(s.Keys, "key")
	}
	return count(s.Keys, "key") + ", refused"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return table.Count(int64(n)) + " " + what + "s"
}
