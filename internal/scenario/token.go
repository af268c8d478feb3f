package scenario

import (
	"fmt"
	"strconv"
	"strings"
)

// tokenize splits a line into words; a quoted string, with whatever stands
// before it without a space, is one word. "#" begins a comment, ";" is a word.
func tokenize(line string) ([]string, error) {
	var tokens []string
	for rest := strings.TrimSpace(line); rest != ""; rest = strings.TrimLeft(rest, " \t\r") {
		if rest[0] == '#' {
			break
		}
		if rest[0] == ';' {
			tokens = append(tokens, ";")
			rest = rest[1:]
			continue
		}
		end := strings.IndexAny(rest, " \t\r\";#")
		if end < 0 {
			end = len(rest)
		}
		if end < len(rest) && rest[end] == '"' {
			quoted, err := strconv.QuotedPrefix(rest[end:])
			if err != nil {
				return nil, fmt.Errorf("the quote in %s is never closed", rest)
			}
			end += len(quoted)
		}
		tokens = append(tokens, rest[:end])
		rest = rest[end:]
	}
	return tokens, nil
}
