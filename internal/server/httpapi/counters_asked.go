package httpapi

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"unicode/utf8"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
)

// decode reads the body of a call that takes no parameters.
func (c *call) decode(most int64, into any, known ...string) *Problem {
	if _, p := c.query(); p != nil {
		return p
	}
	body, p := c.body(most)
	if p != nil {
		return p
	}
	return decode(body, into, known)
}

// asked is a query, of which one parameter may have several values.
type asked url.Values

// asked reads the query. What cannot be written in JSON cannot be asked for, either.
func (c *call) asked(many string, known ...string) (asked, *Problem) {
	query, p := c.queryWith(many, known...)
	if p != nil {
		return nil, p
	}
	for name, values := range query {
		for _, value := range values {
			if !utf8.ValidString(value) {
				return nil, badField.of("%s: it is not UTF-8; send it so.", name).in(name)
			}
		}
	}
	return asked(query), nil
}

func (a asked) text(name string) string { return url.Values(a).Get(name) }

// whole is a whole number of a range. Without the parameter it is the usual one.
func (a asked) whole(name string, usual, least, most int64) (int64, *Problem) {
	text := a.text(name)
	if text == "" && len(a[name]) == 0 {
		return usual, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, badField.of("%s: %.40q cannot be had; write a whole number from %d to %d.", name, text, least, most).in(name)
	}
	return n, nil
}

// window is the stretch of the calendar that is meant.
func (a asked) window(usual counter.Window) (counter.Window, *Problem) {
	if len(a["window"]) == 0 {
		return usual, nil
	}
	w, err := counter.ParseWindow(a.text("window"))
	return w, invalidIn(err, itself)
}

// usualList is how long a list is when nobody says.
const usualList = 10

// windows is of how many windows the history is meant. What has none has no past.
func (a asked) windows(w counter.Window) (int, *Problem) {
	usual := int64(usualList)
	if w == counter.Ever {
		usual = 1
	}
	n, p := a.whole("n", usual, 1, counter.MaxHistory)
	return int(n), p
}

// batch is what is wrong with the length of a list.
func batch(field string, n, most int) *Problem {
	switch {
	case n == 0:
		return badField.of("%s: it is missing; send at least one.", field).in(field)
	case n > most:
		return badField.of("%s: there are %d, at most %d are taken at once; send fewer.", field, n, most).in(field)
	}
	return nil
}

// invalidIn is a problem of an error of a check, which is a *weir.InvalidError or nil.
func invalidIn(err error, field func(string) string) *Problem {
	var invalid *weir.InvalidError
	if errors.As(err, &invalid) {
		return misused(invalid, field)
	}
	return nil
}

// countTrouble is why something was not counted.
func (h *Handler) countTrouble(c *call, err error, field func(string) string) *Problem {
	if p := invalidIn(err, field); p != nil {
		return p
	}
	if errors.Is(err, counter.ErrRange) {
		return outOfRange.of("The amount would leave the range, and nothing was counted; count in larger units, or reset it earlier.")
	}
	return h.storeTrouble(c, err)
}

// storeTrouble is an answer for whoever could not be served by a store. These calls come
// as often as their clients like, so the log is told once a second at most.
func (h *Handler) storeTrouble(c *call, err error) *Problem {
	switch left := c.r.Context().Err(); {
	case errors.Is(left, context.Canceled):
		return &Problem{Status: statusClientGone} // nobody reads it
	case left != nil:
		c.Header().Set("Retry-After", "1")
		return busy.of("There was no time left to answer; try again.")
	}
	now := h.options.Clock().Unix()
	if before := h.warned.Load(); before != now && h.warned.CompareAndSwap(before, now) {
		h.options.Logger.Warn("a store of counts or work could not be asked", "route", c.name, "request_id", c.id, "error", err)
	}
	c.Header().Set("Retry-After", outage)
	if c.r.Method == "GET" || c.r.Method == "HEAD" {
		return storeGone.of("The store does not answer just now; try again soon.")
	}
	return storeGone.of("The store does not answer just now, and what was to change may have changed or not; look, or try again soon.")
}
