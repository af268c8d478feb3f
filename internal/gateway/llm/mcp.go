package llm

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weirhq/weir/internal/notation"
)

// Messages are those of a request of the Model Context Protocol (MCP), which agents use to call tools.
type Messages struct {
	List  []Message
	Wrong string // a sentence if servers may take them for others than we do; else ""

	batch bool
	code  int // of JSON-RPC, of what is wrong
}

// Message is one of JSON-RPC. Names have at most maxName bytes.
type Message struct {
	Method string // "" of a response
	Tool   string // that is called, whether or not an answer is wanted
	ID     string // in JSON; "" if no answer is wanted

	name  string // what the header Mcp-Name has to be
	named bool   // it has to be there
}

const (
	maxBatch = 32
	maxName  = 256  // of a method or a tool, and of an id in JSON
	maxURI   = 4096 // of a resource

	// The revisions of the protocol that differ for us: the only one with batches, and the first whose headers
	// say what is in the body.
	withBatches = "2025-03-26"
	withHeaders = "2026-07-28"
)

// Codes of errors; see JSON-RPC, and the revision withHeaders. A denial has the status of HTTP, which is none of the
// reserved ones.
const (
	parseError     = -32700
	invalidRequest = -32600
	headerMismatch = -32020
)

const (
	ofMethod id = iota + 1
	ofID
	ofParams
	ofName
	ofURI
)

var (
	messageNodes = at(0, "method", once(ofMethod), "id", once(ofID),
		"params", once(ofParams, "name", once(ofName), "uri", once(ofURI)))
	messageFields = [...]string{ofMethod: "method", ofID: "id", ofParams: "params", ofName: "name", ofURI: "uri"}
)

// ParseMessages reads the body of a request. The memory that it takes does not depend on the length.
func ParseMessages(body []byte, h http.Header) (m Messages) {
	body = bytes.TrimSpace(body)
	switch {
	case !utf8.Valid(body) || !json.Valid(body):
		m.wrong(parseError, "The body of the request is not valid JSON in UTF-8.")
		return m
	case body[0] == '[':
		m.batch = true
		m.readBatch(body)
	default:
		m.readMessage(body)
	}
	m.checkHeaders(h)
	return m
}

// wrong takes note of the first of what is wrong.
func (m *Messages) wrong(code int, sentence string) {
	if m.Wrong == "" {
		m.code, m.Wrong = code, sentence
	}
}

func (m *Messages) readBatch(body []byte) {
	all := elements(body, maxBatch)
	if len(all) > maxBatch {
		m.wrong(invalidRequest, "The request has more than "+strconv.Itoa(maxBatch)+" messages; send fewer at once.")
		return
	}
	for _, text := range all {
		m.readMessage(bytes.TrimSpace(text))
	}
}

// elements are those of a list in valid JSON, but at most one more than so many.
func elements(list []byte, most int) (all [][]byte) {
	depth, begin, quoted := 0, 0, false
	for i := 0; i < len(list) && len(all) <= most; i++ {
		switch c := list[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			if depth++; depth == 1 {
				begin = i + 1
			}
		case c == ',' && depth > 1:
		case c == ',', c == ']' && depth == 1:
			all, begin = append(all, list[begin:i]), i+1
		case c == ']' || c == '}':
			depth--
		}
	}
	return all
}

// messageReading is a message that is being read. Its memory is used again for others.
type messageReading struct {
	scan  scanner
	spans [ofURI + 1]span
}

var messageReadings = sync.Pool{New: func() any {
	r := new(messageReading)
	r.scan.root, r.scan.visit = messageNodes, func(v *value) {
		if v.kind != 'k' && r.spans[v.id].kind != '[' { // what is in a list is no name
			r.spans[v.id] = v.span()
		}
	}
	return r
}}

// readMessage reads a message.
func (m *Messages) readMessage(text []byte) {
	if len(text) == 0 || text[0] != '{' {
		m.wrong(invalidRequest, "The body of the request has a message that is not an object.")
		return
	}
	r := messageReadings.Get().(*messageReading)
	defer func() {
		r.scan.reset()
		r.spans = [len(r.spans)]span{}
		messageReadings.Put(r)
	}()
	r.scan.feed(text)
	var one Message
	if s := r.spans[ofMethod]; s.kind != 0 {
		one.Method = m.text(text, s, maxName, "method")
	}
	switch s := r.spans[ofID]; {
	case s.kind == 0 || s.kind == 'n':
	case s.kind != '"' && s.kind != '0' || s.end-s.begin > maxName:
		m.wrong(invalidRequest, "The request has an id that is neither a short text nor a number; correct it.")
	default:
		one.ID = string(text[s.begin:s.end])
	}
	switch one.Method {
	case "tools/call":
		one.Tool, one.named = m.text(text, r.spans[ofName], maxName, "name"), true
		one.name = one.Tool
	case "prompts/get":
		one.name, one.named = m.text(text, r.spans[ofName], maxName, "name"), true
	case "resources/read":
		one.name, one.named = m.text(text, r.spans[ofURI], maxURI, "uri"), true
	}
	if twice := r.scan.twice; twice != 0 && (twice < ofName || one.named) {
		m.wrong(invalidRequest, "The request has several values of "+messageFields[twice]+"; send one.")
	}
	if alike := r.scan.alike; alike != 0 && (alike < ofName || one.named) {
		m.wrong(invalidRequest, "The request has a field that some servers take for "+messageFields[alike]+"; write it exactly so.")
	}
	m.List = append(m.List, one)
}

// text is a value that must be the same for everybody: some programs end a text at its first zero, and half of a
// surrogate pair is different things to different ones.
func (m *Messages) text(message []byte, s span, most int64, field string) (text string) {
	if s.kind == '"' && s.end-s.begin <= 6*most+2 { // as long as escapes can make it
		_ = json.Unmarshal(message[s.begin:s.end], &text) // it is valid
	}
	if text == "" || int64(len(text)) > most || strings.ContainsFunc(text, func(c rune) bool { return unicode.IsControl(c) || c == utf8.RuneError }) {
		m.wrong(invalidRequest, "The request has a "+field+" that is missing, too long or no name; correct it.")
		return ""
	}
	return text
}

// checkHeaders compares the headers with the messages. A client could say one thing to who reads the headers, and another
// to who reads the body.
func (m *Messages) checkHeaders(h http.Header) {
	versions, methods, names := h["Mcp-Protocol-Version"], h["Mcp-Method"], h["Mcp-Name"]
	if m.batch && slices.ContainsFunc(versions, func(v string) bool { return v != withBatches }) {
		m.wrong(invalidRequest, "Only revision "+withBatches+" of the protocol has several messages in a request; send one.")
	}
	required := slices.ContainsFunc(versions, func(v string) bool { return v >= withHeaders })
	for _, one := range m.List {
		if one.Method == "" {
			continue
		}
		if !agree(methods, one.Method, required) {
			m.wrong(headerMismatch, "The header Mcp-Method is not the method in the body.")
		}
		if one.named && !agree(names, one.name, required) {
			m.wrong(headerMismatch, "The header Mcp-Name is not the name in the body.")
		}
	}
}

// agree reports whether all values of a header are what they have to be. A value that is no plain text comes
// as =?base64?…?=.
func agree(values []string, want string, required bool) bool {
	for _, v := range values {
		if inner, found := strings.CutPrefix(v, "=?base64?"); found && v != want {
			plain, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(inner, "?="))
			if v = string(plain); err != nil {
				return false
			}
		}
		if v != want {
			return false
		}
	}
	return len(values) > 0 || !required
}

// Speaks reports whether the request is one of the protocol, as far as it can be read.
func (m *Messages) Speaks() bool {
	return slices.ContainsFunc(m.List, func(one Message) bool { return one.Method != "" })
}

// Answerable reports whether a message wants an answer.
func (m *Messages) Answerable() bool {
	return slices.ContainsFunc(m.List, func(one Message) bool { return one.Method != "" && one.ID != "" })
}

// Trouble is why messages are denied, for whom the protocol serves: programs, and models, which read the text.
type Trouble struct {
	Status int
	Limit  bool   // a limit denies them
	Detail string // a sentence; "" for how long to wait, or that it does not help
	Rule   string
	Code   int // defined by the application
	Wait   time.Duration
}

// Answer returns an error for each message that wants an answer, or one for nobody.
func (m *Messages) Answer(t *Trouble) []byte {
	var answers [][]byte
	for _, one := range m.List {
		if one.Method != "" && one.ID != "" {
			answers = append(answers, m.answer(one.ID, &one, t))
		}
	}
	if len(answers) == 0 {
		return m.answer("null", nil, t)
	}
	text := bytes.Join(answers, []byte(","))
	if m.batch {
		text = slices.Concat([]byte("["), text, []byte("]"))
	}
	return text
}

// answer is an error for a message, if there is one.
func (m *Messages) answer(id string, one *Message, t *Trouble) []byte {
	code, text := t.Status, t.Detail
	if m.Wrong != "" && t.Status == http.StatusBadRequest {
		code = m.code
	}
	seconds := notation.CeilDuration(t.Wait, time.Second)
	if t.Limit {
		switch {
		case text != "":
		case seconds > 0:
			text = "try again in " + strconv.FormatInt(seconds, 10) + " s"
		default:
			text = "waiting does not help"
		}
		text = "rate limit for " + m.about(one) + ": " + text
	}
	dst := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	dst = strconv.AppendInt(append(dst, `,"error":{"code":`...), int64(code), 10)
	dst = append(append(append(dst, `,"message":`...), quote(text)...), `,"data":{`...)
	dst = strconv.AppendInt(append(dst, `"status":`...), int64(t.Status), 10)
	if t.Rule != "" {
		dst = append(append(dst, `,"rule":`...), quote(t.Rule)...)
	}
	if t.Code != 0 {
		dst = strconv.AppendInt(append(dst, `,"code":`...), int64(t.Code), 10)
	}
	if seconds > 0 {
		dst = strconv.AppendInt(append(dst, `,"retry_after":`...), seconds, 10)
	}
	return append(dst, "}}}"...)
}

func quote(text string) []byte {
	quoted, _ := json.Marshal(text) // it is a string
	return quoted
}

// about is what a limit denies.
func (m *Messages) about(one *Message) string {
	switch {
	case len(m.List) > 1:
		return "a batch of " + strconv.Itoa(len(m.List)) + " messages"
	case one == nil:
		return "this request"
	case one.Tool != "":
		return "tool " + one.Tool
	}
	return one.Method
}
