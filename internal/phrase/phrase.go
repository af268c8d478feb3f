// Package phrase has words for people.
package phrase

import "fmt"

// Count says how many there are of a thing.
func Count[N int | int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
