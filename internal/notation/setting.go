package notation

import (
	"fmt"
	"slices"
	"strings"
)

// Setting is one of them.
type Setting struct {
	Name, Value string
	Options     []Option
}

// Option is something that is said besides.
type Option struct{ Name, Value string }

// Bounds on a text that is read.
const (
	maxText     = 64 << 10
	maxSettings = 1000
)

// ParseSettings reads settings that are separated by semicolons. Blanks around words do not
// matter.
func ParseSettings(text string) ([]Setting, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("more than %d characters; shorten it", maxText)
	}
	var all []Setting
	for part := range strings.SplitSeq(text, ";") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		if len(all) == maxSettings {
			return nil, fmt.Errorf("more than %d settings; write fewer", maxSettings)
		}
		s, err := one(part)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func one(text string) (s Setting, err error) {
	for i, word := range strings.Split(text, ",") {
		name, value, ok := strings.Cut(word, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		switch {
		case !ok || name == "" || value == "":
			return Setting{}, fmt.Errorf("%q is invalid; write name=value", strings.TrimSpace(word))
		case i == 0:
			s.Name, s.Value = name, value
			continue
		case slices.ContainsFunc(s.Options, func(o Option) bool { return o.Name == name }):
			return Setting{}, fmt.Errorf("%q sets %s twice; write it once", strings.TrimSpace(text), name)
		}
		s.Options = append(s.Options, Option{name, value})
	}
	return s, nil
}
