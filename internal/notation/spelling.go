package notation

import (
	"fmt"
	"math"
	"strings"
)

// NameHere returns what is called by a well-known word elsewhere: its name here, or "".
// Elsewhere is by that word in small letters with underscores; case, dashes and spaces
// make no difference.
func NameHere(word string, elsewhere map[string]string) string {
	const longest = 64
	if len(word) > longest {
		return ""
	}
	return elsewhere[strings.NewReplacer("-", "_", " ", "_").Replace(strings.ToLower(word))]
}

// Hint is what to say of a word that is unknown: which one was probably meant, or else what
// otherwise helps.
func Hint(word string, known []string, otherwise string) string {
	if near := Nearest(word, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return otherwise
}

// Nearest returns the candidate closest to word, or "" when none is near
// enough to be worth suggesting: a third of the letters may be wrong.
func Nearest(word string, candidates []string) string {
	best, bestDistance := "", max(1, (len(word)+1)/3)+1
	for _, c := range candidates {
		if d := distance(word, c); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// distance is the number of letters to insert, delete or replace between a
// and b. Words longer than any sensible name are simply far apart, so that
// hostile input costs nothing.
func distance(a, b string) int {
	const longest = 64
	if len(a) > longest || len(b) > longest {
		return math.MaxInt
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
