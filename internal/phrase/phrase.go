// Package phrase formats text for people: plurals, lists, columns and durations.
package phrase

import (
	"fmt"
	"strings"
)

// Count says how many there are of a thing.
func Count[N int | int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Join puts the names of things together.
func Join[T fmt.Stringer](things []T, between string) string {
	names := make([]string, len(things))
	for i, thing := range things {
		names[i] = thing.String()
	}
	return strings.Join(names, between)
}
