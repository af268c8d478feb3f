package httplimit

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/rule"
)

const (
	maxJSON      = 1 << 20  // bytes of a body that expressions of rules can read
	maxResponses = 64 << 20 // bytes of all responses that are kept for them
)

// errLong is that a body is too long for expressions.
var errLong = unread(&http.MaxBytesError{Limit: maxJSON})

// unread is what a client is told whose body could not be read.
func unread(err error) *rule.RequestError {
	if told, is := errors.AsType[*rule.RequestError](err); is {
		return told
	}
	if long, is := errors.AsType[*http.MaxBytesError](err); is {
		return &rule.RequestError{Status: http.StatusRequestEntityTooLarge,
			Reason: "The body of the request is longer than " + strconv.FormatInt(long.Limit>>20, 10) + " MiB."}
	}
	if errors.Is(err, budget.ErrBusy) {
		return &rule.RequestError{Status: http.StatusServiceUnavailable, Reason: "Too many long requests are being read; try again later."}
	}
	if errors.Is(err, budget.ErrSlow) {
		return &rule.RequestError{Status: http.StatusRequestTimeout, Reason: "The body of the request came too slowly."}
	}
	return &rule.RequestError{Status: http.StatusBadRequest, Reason: "The body of the request could not be read."}
}

// Charsets in a Content-Type, and those whose bytes we read as others do.
var (
	charset      = regexp.MustCompile(`(?i)charset[^=;,]*=`)
	plainCharset = regexp.MustCompile(`(?i)charset *= *"?(utf-?8|us-ascii)"? *([;,]|$)`)
)

// checkCoding returns an error if a body is not what its bytes seem to say.
func checkCoding(h http.Header) error {
	for _, coding := range h["Content-Encoding"] {
		if coding != "" && !strings.EqualFold(coding, "identity") {
			return &rule.RequestError{Status: http.StatusUnsupportedMediaType,
				Reason: "The body of the request is compressed; send it without Content-Encoding."}
		}
	}
	for _, kind := range h["Content-Type"] {
		if kind != "application/json" && len(charset.FindAllString(kind, -1)) != len(plainCharset.FindAllString(kind, -1)) {
			return &rule.RequestError{Status: http.StatusUnsupportedMediaType,
				Reason: "The body of the request has another charset than UTF-8 in its Content-Type; send it in UTF-8."}
		}
	}
	return nil
}

// requestBody is the body of a request that an expression may read. It is read only then,
// and the handler still gets all of it.
type requestBody struct {
	by      *Middleware
	w       http.ResponseWriter
	r       *http.Request
	request *rule.Request
	denied  *look // if the request is denied before its body is read; or nil
	done    bool
	text    []byte
	err     error
}

// offerBody lets expressions read the body of a request. It is nil if none does, or the body
// has been read already.
func (m *Middleware) offerBody(w http.ResponseWriter, r *http.Request, q *rule.Request, p *prompt) *requestBody {
	q.Size = r.ContentLength
	if table, _ := m.engine.Rules(); !table.ReadsBody() {
		return nil
	}
	switch {
	case p == nil:
	case len(p.body) > maxJSON:
		q.JSON = func() ([]byte, error) { return nil, errLong }
		return nil
	default:
		text := p.body
		q.JSON, p.kept = func() ([]byte, error) { return text, nil }, true
		return nil
	}
	b := &requestBody{by: m, w: w, r: r, request: q}
	q.JSON = b.readBody
	return b
}

// source is where the body of a request comes from.
func (m *Middleware) source(w http.ResponseWriter, r *http.Request, q *rule.Request) budget.BodySource {
	return budget.BodySource{Writer: w, Request: r, Client: q.IP, Pace: budget.Pace{Timeout: m.options.BodyTimeout, Rate: m.options.BodyRate}}
}

// look looks whether a request is denied before more of its body is read: to read it needs room, and
// time. It costs a question to the store, so that a short body is read without.
type look struct {
	by      *Middleware
	r       *http.Request
	request *rule.Request
	verdict *engine.Verdict
	denial  *engine.Denial
	err     error // why the request cannot be decided
}

// Look is errDenied if the request is denied, or cannot be decided.
func (l *look) Look() error {
	denied, err := l.by.front.Gate.Deny(l.r.Context(), l.request, l.verdict, l.denial)
	if l.request.Unread = false; err != nil {
		*l.denial, l.err = engine.DescribeError(l.verdict, err), err
	}
	if denied || err != nil {
		return errDenied
	}
	return nil
}

// errDenied is that a request is denied whatever its body is.
var errDenied error = &rule.RequestError{Status: http.StatusTooManyRequests, Reason: "The request is denied before its body is read.", Denied: true}

func hasBody(r *http.Request) bool {
	return r.Body != nil && r.Body != http.NoBody && r.ContentLength != 0
}

func (b *requestBody) readBody() ([]byte, error) {
	r := b.r
	switch {
	case b.done:
	case !hasBody(r):
	case r.ContentLength > maxJSON:
		b.err = errLong
	default:
		if b.err = checkCoding(r.Header); b.err == nil {
			b.readAhead()
		}
	}
	b.done = true
	return b.text, b.err
}

// readAhead reads as much as an expression can use, and puts it before the rest.
func (b *requestBody) readAhead() {
	known, r := *b.request, b.r
	known.JSON = nil
	from, look := b.by.source(b.w, r, b.request), &look{b.by, r, &known, new(engine.Verdict), new(engine.Denial), nil}
	from.Long = look
	read, release, err := prompts.ReadAhead(from, maxJSON+1)
	if err == errDenied {
		b.denied = look
	}
	all := release
	if before, is := r.Body.(*restored); is { // it has been read for a rule that never denies
		all = func() {
			release()
			before.free()
		}
	}
	r.Body = &restored{Reader: followed(read, r.Body, err), Closer: r.Body, kept: true, release: all}
	switch {
	case len(read) > maxJSON:
		b.err = errLong
	case err != io.EOF:
		b.err = unread(err)
	default:
		b.text = read
	}
}

// restored is a body of which some or all was read before. That takes room until it has been read again, or
// is closed; if it is kept for others, until the response has ended.
type restored struct {
	io.Reader
	io.Closer
	kept    bool
	ended   atomic.Bool // a transport may close what it still reads
	release func()
}

func (b *restored) Read(to []byte) (int, error) {
	n, err := b.Reader.Read(to)
	if err == io.EOF {
		b.Reader = http.NoBody // so that the memory is free, too
		b.end()
	}
	return n, err
}

func (b *restored) Close() error {
	b.end()
	return b.Closer.Close()
}

func (b *restored) end() {
	if !b.kept {
		b.free()
	}
}

func (b *restored) free() {
	if !b.ended.Swap(true) {
		b.release()
	}
}

// freeBody gives back the room of the body of a request, if it has any.
func freeBody(r *http.Request) {
	if b, is := r.Body.(*restored); is {
		b.free()
	}
}

// followed is what was read of a body, and what follows: the rest of it, or the error that ended it.
func followed(read []byte, body io.Reader, err error) io.Reader {
	return io.MultiReader(bytes.NewReader(read), &rest{body, err})
}

type rest struct {
	body io.Reader
	err  error
}

func (r *rest) Read(to []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	return r.body.Read(to)
}

// responses bounds what is kept of responses.
var responses = budget.New(maxResponses)

// kept is a response in JSON that an expression reads when it is complete. A response that
// is too long, or for which there is no room, is not kept.
type kept struct {
	text []byte
	lost bool
}

// askPlain asks for a response that can be read, or a client could choose one that cannot, and pay
// only the estimate. It changes the request, but not what that shares with others.
func askPlain(r *http.Request) {
	if _, given := r.Header["Accept-Encoding"]; given {
		r.Header = maps.Clone(r.Header)
		r.Header["Accept-Encoding"] = []string{"identity"}
	}
}

// begin looks at the headers of the response.
func (k *kept) begin(h http.Header) {
	if k == nil {
		return
	}
	encoding := h.Get("Content-Encoding")
	if !strings.Contains(h.Get("Content-Type"), "json") || encoding != "" && !strings.EqualFold(encoding, "identity") {
		k.drop()
	}
}

func (k *kept) keepBytes(body []byte) {
	if k == nil || k.lost {
		return
	}
	if len(k.text)+len(body) > maxJSON || !responses.Try(int64(len(body))) {
		k.drop()
		return
	}
	k.text = append(k.text, body...)
}

// drop gives its room back.
func (k *kept) drop() {
	if k != nil {
		responses.Give(int64(len(k.text)))
		k.text, k.lost = nil, true
	}
}
