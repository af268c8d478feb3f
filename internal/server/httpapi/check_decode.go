package httpapi

import "strings"

// parse reads the request from JSON. Nearly all bodies are plain, and read in a tenth
// of the time that the library needs; what is not goes to the library, which also
// says what is wrong.
// If there is a place for the ttl, it is a reservation.
func (a *CheckRequest) parse(body []byte, ttl *int64) error {
	if a.quick(string(body), ttl) {
		return nil
	}
	*a = CheckRequest{}
	if ttl == nil {
		return decode(body, a)
	}
	var r ReserveRequest
	err := decode(body, &r)
	*a, *ttl = r.CheckRequest, r.TTLMS
	return err
}

// quick reads an object of which nothing needs a second thought: known fields, each
// once and in small letters, ASCII without escapes, whole numbers that are not
// negative. It reports whether it was one. Then the library would have read the same;
// a test compares the two.
func (a *CheckRequest) quick(text string, ttl *int64) bool {
	s := scanner{rest: text}
	seen := uint16(0)
	ok := s.object(func(name string) bool {
		bit := uint16(0)
		for i, known := range checkFields {
			if name == known {
				bit = 1 << i
				break
			}
		}
		if bit == 0 || seen&bit != 0 {
			return false
		}
		seen |= bit
		if name == "ttl_ms" {
			return ttl != nil && s.number(ttl)
		}
		return a.field(&s, name)
	})
	s.space()
	return ok && s.rest == ""
}

// field reads the value of a field.
func (a *CheckRequest) field(s *scanner, name string) bool {
	switch name {
	case "ip":
		return s.text(&a.IP)
	case "user":
		return s.text(&a.User)
	case "api_key":
		return s.text(&a.APIKey)
	case "tier":
		return s.text(&a.Tier)
	case "priority":
		return s.text(&a.Priority)
	case "method":
		return s.text(&a.Method)
	case "host":
		return s.text(&a.Host)
	case "path":
		return s.text(&a.Path)
	case "headers":
		return s.texts(&a.Headers)
	case "cookies":
		return s.texts(&a.Cookies)
	case "query":
		return s.texts(&a.Query)
	case "attributes":
		return s.texts(&a.Attributes)
	case "cost":
		return s.amount(&a.Cost)
	case "peek":
		return s.bool(&a.Peek)
	case "charge":
		return s.text(&a.Charge)
	}
	return false
}

// scanner reads plain JSON. Each method reports whether it was there; what is left
// after it was not is of no use.
type scanner struct{ rest string }

func (s *scanner) space() { s.rest = strings.TrimLeft(s.rest, " \t\r\n") }

// byte reads a byte with space around it.
func (s *scanner) byte(b byte) bool {
	s.space()
	if s.rest == "" || s.rest[0] != b {
		return false
	}
	s.rest = s.rest[1:]
	s.space()
	return true
}

// object reads names, and what the function reads after each.
func (s *scanner) object(value func(name string) bool) bool {
	if !s.byte('{') {
		return false
	}
	if s.byte('}') {
		return true
	}
	for {
		var name string
		if !s.text(&name) || !s.byte(':') || !value(name) {
			return false
		}
		if s.byte('}') {
			return true
		}
		if !s.byte(',') {
			return false
		}
	}
}

func (s *scanner) text(into *string) bool {
	if s.rest == "" || s.rest[0] != '"' {
		return false
	}
	for i := 1; i < len(s.rest); i++ {
		switch b := s.rest[i]; {
		case b == '"':
			*into, s.rest = s.rest[1:i], s.rest[i+1:]
			return true
		case b < 0x20 || b >= 0x80 || b == '\\':
			return false
		}
	}
	return false
}

func (s *scanner) texts(into *map[string]string) bool {
	all := map[string]string{}
	*into = all
	return s.object(func(name string) bool {
		var value string
		_, twice := all[name]
		ok := s.text(&value) && !twice
		all[name] = value
		return ok
	})
}

// number reads at most 18 digits, which an int64 holds.
func (s *scanner) number(into *int64) bool {
	n, digits := int64(0), 0
	for digits < len(s.rest) && '0' <= s.rest[digits] && s.rest[digits] <= '9' {
		n = 10*n + int64(s.rest[digits]-'0')
		if digits++; digits > 18 {
			return false
		}
	}
	if digits == 0 || digits > 1 && s.rest[0] == '0' {
		return false
	}
	*into, s.rest = n, s.rest[digits:]
	return true
}

func (s *scanner) bool(into *bool) bool {
	rest, yes := strings.CutPrefix(s.rest, "true")
	if !yes {
		var no bool
		if rest, no = strings.CutPrefix(s.rest, "false"); !no {
			return false
		}
	}
	*into, s.rest = yes, rest
	return true
}
