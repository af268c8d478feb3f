package rule

import "slices"

// Code is what there is to know about the code of a problem.
type Code struct {
	Name    string `json:"name"`    // such as "W006"
	Title   string `json:"title"`   // half a sentence
	Meaning string `json:"meaning"` // and why it matters
	Remedy  string `json:"remedy"`
}

// LookUp finds a code by its name.
func LookUp(name string) (Code, bool) {
	for _, table := range [][]Code{errorCodes, warningCodes} {
		if i := slices.IndexFunc(table, func(c Code) bool { return c.Name == name }); i >= 0 {
			return table[i], true
		}
	}
	return Code{}, false
}

// Codes returns all codes, errors first, in order. A code keeps its meaning; one
// that is no longer used is not given to another problem.
func Codes() []Code { return slices.Concat(errorCodes, warningCodes) }
