package httpapi

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
)

// query is what a call asks in its URL. It can be read to the end whatever is in it: the
// first thing that is wrong is kept.
type query struct {
	values url.Values
	err    error
}

// query reads the query, which may have these parameters, each once, and no other.
func (c *call) query(known ...string) *query { return c.queryWith("", known...) }

// queryWith is query with one parameter that may be there several times.
func (c *call) queryWith(many string, known ...string) *query {
	if many != "" {
		known = append([]string{many}, known...)
	}
	values, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return &query{err: fault.BadField.Of("The query is invalid; percent-encode special characters, as in ?key=user%%3Aalice.")}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case !slices.Contains(known, name):
			return &query{err: unknownName("parameter", name, known)}
		case len(values[name]) > 1 && name != many:
			return &query{err: fault.Field(name, "given %d times; send it once.", len(values[name])).Coded("twice")}
		}
	}
	return &query{values: values}
}

// queryOfTexts is queryWith for what goes into JSON: what cannot be written there cannot be
// asked for, either.
func (c *call) queryOfTexts(many string, known ...string) *query {
	q := c.queryWith(many, known...)
	for name, values := range q.values {
		for _, value := range values {
			if !utf8.ValidString(value) {
				q.wrong(fault.Field(name, "not valid UTF-8; encode it as UTF-8."))
			}
		}
	}
	return q
}

// wrong keeps what is wrong, if something is, and nothing was before.
func (q *query) wrong(err error) {
	if q.err == nil {
		q.err = err
	}
}

func (q *query) text(name string) string { return q.values.Get(name) }

// yes is a parameter that is true or false, which is the default.
func (q *query) yes(name string) bool {
	value := q.text(name)
	if value != "" && value != "true" && value != "false" {
		q.wrong(fault.Field(name, "%.40q is unknown; write true or false.", value))
	}
	return value == "true"
}

// whole is a whole number of a range. Without the parameter it is the usual one.
func (q *query) whole(name string, usual, least, most int64) int64 {
	if !q.values.Has(name) {
		return usual
	}
	n, err := strconv.ParseInt(q.text(name), 10, 64)
	if err != nil || n < least || n > most {
		q.wrong(fault.Field(name, "%.40q is out of range; write a whole number from %d to %d.", q.text(name), least, most).Coded("not-in-range", "value", q.text(name), "min", least, "max", most))
	}
	return n
}

// window is the stretch of the calendar that is meant.
func (q *query) window(usual counter.Window) counter.Window {
	if !q.values.Has("window") {
		return usual
	}
	w, err := counter.ParseWindow(q.text("window"))
	q.wrong(manage.Invalid(err, itself))
	return w
}

// usualList is the default length of a list.
const usualList = 10

// windows is of how many windows the history is meant.
func (q *query) windows(w counter.Window) int {
	return int(q.whole("n", int64(manage.DefaultWindows([]counter.Key{{Window: w}})), 1, counter.MaxHistory))
}

// list is a parameter that may be there several times, and must be once.
func (q *query) list(name string, most int) []string {
	all := q.values[name]
	q.wrong(fault.Length(name, len(all), most))
	return all
}

// versionText is a version of the rules, as its entity tag has it. It is the same for the whole document,
// for each of its rules, and whether they are asked for in JSON or as written: who changes one rule
// must have seen the version that it stands in.
func versionText(version int64) string { return strconv.FormatInt(version, 10) }

// tagOf is the entity tag of a version of the rules, or of a client.
func tagOf(version string) string { return `"` + version + `"` }

// hasTag is whether that is among some.
func hasTag(tags []string, version string) bool {
	// A proxy that compresses an answer marks its tag as weak, and passes it on so.
	return slices.ContainsFunc(tags, func(tag string) bool { return strings.TrimPrefix(tag, "W/") == tagOf(version) })
}

// setTag tells the version that an answer is about.
func (c *call) setTag(version string) { c.Header()["Etag"] = []string{tagOf(version)} }

// upToDate tells the version that an answer is about. If the client has it already, that is all
// there is to answer.
func (c *call) upToDate(version string) bool {
	c.setTag(version)
	tags, any, ok := entityTags(c.r.Header["If-None-Match"])
	if !ok || !any && !hasTag(tags, version) {
		return false
	}
	c.WriteHeader(http.StatusNotModified)
	return true
}

// ifMatch is the condition of a call that a version has to meet: nil if there is none, or
// if it is "*", for whatever is there.
func ifMatch(r *http.Request) (match func(version int64) bool, given bool, err error) {
	tags, any, ok := entityTags(r.Header["If-Match"])
	switch {
	case !ok:
		return nil, false, fault.Field("If-Match", `not a list of ETags; send the ETag of the version you read, with its quotes, as in If-Match: "7".`)
	case any || len(tags) == 0:
		return nil, any, nil
	}
	return func(version int64) bool { return hasTag(tags, versionText(version)) }, true, nil
}

// maxTags is how many tags are read.
const maxTags = 100

// entityTags reads a list of entity tags of RFC 9110, or "*".
func entityTags(lines []string) (tags []string, any, ok bool) {
	rest := strings.Trim(strings.Join(lines, ","), " \t")
	if rest == "*" {
		return nil, true, true
	}
	for rest != "" {
		if rest[0] == ',' || rest[0] == ' ' || rest[0] == '\t' {
			rest = rest[1:]
			continue
		}
		begin := 0
		if strings.HasPrefix(rest, "W/") {
			begin = 2
		}
		if len(rest) <= begin || rest[begin] != '"' || len(tags) == maxTags {
			return nil, false, false
		}
		length := strings.IndexByte(rest[begin+1:], '"')
		if length < 0 {
			return nil, false, false
		}
		end := begin + 1 + length + 1
		tags, rest = append(tags, rest[:end]), rest[end:]
		if rest != "" && rest[0] != ',' && rest[0] != ' ' && rest[0] != '\t' {
			return nil, false, false
		}
	}
	return tags, false, true
}
