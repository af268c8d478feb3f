package httpapi

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/fault"
)

// etagOf is the tag of a version of the rules. It is the same for the whole document,
// for each of its rules, and whether they are asked for in JSON or as written: who
// changes one rule must have seen the version that it stands in.
func etagOf(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }

// setETag tells the version that an answer is about.
func (c *call) setETag(version int64) { c.Header()["Etag"] = []string{etagOf(version)} }

// ifMatch is the condition of a call that a version has to meet: nil if there is none, or
// if it is "*", for whatever is there.
func ifMatch(r *http.Request) (match func(version int64) bool, given bool, err error) {
	tags, any, ok := entityTags(r.Header["If-Match"])
	switch {
	case !ok:
		return nil, false, fault.BadField.Of(`If-Match: not a list of ETags; send the ETag of the version you read, with its quotes, as in If-Match: "7".`).In("If-Match")
	case any || len(tags) == 0:
		return nil, any, nil
	}
	return func(version int64) bool { return named(tags, version) }, true, nil
}

// unchanged is whether the client has this version already.
func unchanged(r *http.Request, version int64) bool {
	tags, any, ok := entityTags(r.Header["If-None-Match"])
	return ok && (any || named(tags, version))
}

func named(tags []string, version int64) bool {
	// A proxy that compresses an answer marks its tag as weak, and passes it on so.
	return slices.ContainsFunc(tags, func(tag string) bool { return strings.TrimPrefix(tag, "W/") == etagOf(version) })
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
