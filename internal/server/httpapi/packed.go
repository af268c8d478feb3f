package httpapi

import (
	"strconv"
	"sync/atomic"

	"github.com/weirhq/weir/internal/gzipped"
)

const (
	minPacked  = 1400 // bytes: fewer travel in one packet anyway
	maxPacking = 4    // at once, so that checks have enough CPU time; others are sent as they are
)

// packing is how many answers are being compressed, in the whole process.
var packing atomic.Int32

// packed is the body of an answer of the management, compressed if that is worth it and the
// client takes it so. Lists and statistics become a tenth.
//
// The length of what is compressed tells something about a secret to whoever chooses a part
// of it and sees the length (BREACH). Nobody can do both here: a page of another site
// cannot make calls with a session, and calls without one have no secret.
func (c *call) packed(body []byte) []byte {
	if len(body) < minPacked || !gzipped.Accepted(c.r.Header["Accept-Encoding"]) {
		return body
	}
	defer packing.Add(-1)
	if packing.Add(1) > maxPacking {
		return body
	}
	small := gzipped.Fast(body)
	if small == nil {
		return body
	}
	header := c.Header()
	header["Content-Encoding"] = typeGzip
	header.Set("Content-Length", strconv.Itoa(len(small)))
	if tag := header["Etag"]; len(tag) == 1 { // which stands for the same rules, but for other bytes
		header["Etag"] = []string{"W/" + tag[0]}
	}
	return small
}

// Values of headers, which are never changed.
var (
	typeGzip = []string{"gzip"}
	byCoding = []string{"Accept-Encoding"}
)
