package httpapi

import (
	"bytes"
	"cmp"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/clients"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/rule"
)

// Bounds on POST /v1/clients/import and GET /v1/clients/export.
const (
	MaxImportBody = 1 << 20 // bytes
	maxExporting  = 8       // at the same time
	maxOwnExports = 2       // of one caller: a token, a session or, without them, an address
)

// ImportAnswer is what became of the lines of an import.
type ImportAnswer struct {
	Added     int           `json:"added"`
	Changed   int           `json:"changed"`
	Unchanged int           `json:"unchanged"`
	Deleted   int           `json:"deleted"`
	Errors    []ImportError `json:"errors"`             // of lines that changed nothing
	Warnings  []ImportError `json:"warnings,omitempty"` // of lines with something that has no effect under the rules in force
}

// ImportError is what is wrong with a line.
type ImportError struct {
	Line    int    `json:"line"` // from 1
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
}

// batch is an import while its lines are read.
type batch struct {
	ImportAnswer
	registry *clients.Registry
	seen     map[string]int // the line of a client
	dry      bool
	changes  []clients.Change
	lines    []int // of the changes
}

// importClients answers POST /v1/clients/import: a line is a client as a file has it, or {"client": "…", "deleted": true}. Each line
// alone is imported or has an error. Those that change nothing cost nothing, so that an import can be repeated.
func (h *Handler) importClients(c *call) (any, error) {
	q := c.query("dry_run")
	dry := q.yes("dry_run")
	if q.err != nil {
		return nil, q.err
	}
	body, err := c.read(MaxImportBody, nil)
	if err != nil {
		return nil, err
	}
	b := batch{ImportAnswer: ImportAnswer{Errors: []ImportError{}}, registry: h.options.Clients, seen: map[string]int{}, dry: dry}
	number, count := 0, 0
	for line := range bytes.Lines(body) {
		number++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if count++; count > clients.MaxChanges {
			return nil, fault.Length("lines", count, clients.MaxChanges)
		}
		b.read(number, line)
	}
	if dry {
		b.preview(h.options.Engine)
		return b.ImportAnswer, nil
	}
	return b.apply(h, c)
}

// wrong keeps what is wrong with a line.
func (b *batch) wrong(line int, field, message string) {
	b.Errors = append(b.Errors, ImportError{line, field, message})
}

// warn tells of a client what of it has no effect.
func (b *batch) warn(line int, e *engine.Engine, change *clients.Change) {
	if err := e.Idle(&change.Client); err != nil {
		b.Warnings = append(b.Warnings, ImportError{Line: line, Message: err.Error()})
	}
}

// read reads a line. A dry run finds out here whether it changes anything.
func (b *batch) read(number int, line []byte) {
	change, problems := readChange(line)
	name := change.Client.Name
	if len(problems) == 0 && b.seen[name] > 0 {
		problems = rule.Problems{{Field: "client", Message: "client: another line has the same client; remove one of the two"}}
	}
	if len(problems) > 0 {
		for _, p := range problems[:min(len(problems), maxOfLine)] {
			b.wrong(number, p.Field, p.Message)
		}
		return
	}
	b.seen[name] = number
	was, known := b.registry.Get(name)
	if b.dry && (change.Delete && !known || !change.Delete && known && bytes.Equal(rule.ClientToJSON(&was.Client), rule.ClientToJSON(&change.Client))) {
		b.Unchanged++
		return
	}
	b.changes, b.lines = append(b.changes, change), append(b.lines, number)
}

// maxOfLine is how many errors of one line are told.
const maxOfLine = 8

var deletedField = []byte(`"deleted"`)

// readChange reads a line of an import.
func readChange(line []byte) (change clients.Change, problems rule.Problems) {
	if bytes.Contains(line, deletedField) {
		e := document.Read("line.json", string(line), func(document.Fault) {})
		if e != nil && len(e.Members) == 2 && isTrue(e.Get("deleted")) {
			e.Members = slices.DeleteFunc(e.Members, func(m document.Member) bool { return m.Name.Text == "deleted" })
			line, change.Delete = e.JSON(), true
		}
	}
	change.Client, problems = parseClient(line)
	return change, problems
}

func isTrue(e *document.Element) bool {
	return e != nil && e.Kind == document.Truth && e.Text == "true"
}

// preview counts the changes as if they were made.
func (b *batch) preview(e *engine.Engine) {
	for i := range b.changes {
		b.warn(b.lines[i], e, &b.changes[i])
		_, known := b.registry.Get(b.changes[i].Client.Name)
		b.count(&b.changes[i], !known)
	}
}

func (b *batch) count(change *clients.Change, created bool) {
	switch {
	case change.Delete:
		b.Deleted++
	case created:
		b.Added++
	default:
		b.Changed++
	}
}

// apply makes the changes.
func (b *batch) apply(h *Handler, c *call) (any, error) {
	if len(b.changes) == 0 {
		return b.ImportAnswer, nil
	}
	outcomes, err := b.registry.Apply(c.r.Context(), c.author(), b.changes)
	if err != nil {
		return nil, h.trouble(c).Client(err)
	}
	for i := range outcomes {
		wasGone := b.changes[i].Delete && errors.Is(outcomes[i].Err, clients.ErrNotFound)
		switch {
		case outcomes[i].Unchanged || wasGone:
			b.Unchanged++
			continue
		case outcomes[i].Err == nil:
			b.warn(b.lines[i], h.options.Engine, &b.changes[i])
			b.count(&b.changes[i], outcomes[i].Created)
			continue
		}
		wrong := calls.Of(outcomes[i].Err)
		if wrong == nil {
			return nil, h.trouble(c).Client(outcomes[i].Err)
		}
		b.wrong(b.lines[i], wrong.Field, wrong.Detail)
	}
	slices.SortStableFunc(b.Errors, func(x, y ImportError) int { return cmp.Compare(x.Line, y.Line) })
	return b.ImportAnswer, nil
}

// exports are those that are being answered, by caller.
type exports struct {
	mu   sync.Mutex
	of   map[string]int
	here int
}

// begin reports whether a caller may have one more. How many there are is for the answer if not.
func (e *exports) begin(caller string) (most int, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.of[caller] >= maxOwnExports:
		return maxOwnExports, false
	case e.here >= maxExporting:
		return maxExporting, false
	case e.of == nil:
		e.of = map[string]int{}
	}
	e.of[caller]++
	e.here++
	return 0, true
}

func (e *exports) end(caller string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.here--
	if e.of[caller]--; e.of[caller] == 0 {
		delete(e.of, caller)
	}
}

// exportClients answers GET /v1/clients/export with NDJSON: the clients of one moment, in no order. Who reads too slowly keeps others
// from theirs, so the answer ends, and not as if it were whole.
func (h *Handler) exportClients(c *call) (any, error) {
	caller := cmp.Or(c.caller.Name, c.client.String())
	if most, ok := h.exporting.begin(caller); !ok {
		return nil, fault.Busy.Of("%d exports are already running, the maximum; try again.", most).After(time.Second).Coded("exports-busy", "max", most)
	}
	defer h.exporting.end(caller)
	c.Header()["Content-Type"] = typeLines
	s := stream{c, http.NewResponseController(c.ResponseWriter), h.patience}
	if !s.open() {
		panic(http.ErrAbortHandler)
	}
	var lines []byte
	begun, written := h.options.Clock(), 0
	write := func() {
		written += len(lines)
		may := followerPatience + time.Duration(written)*time.Second/exportSpeed
		if took := h.options.Clock().Sub(begun); took > may || !s.write(lines) {
			h.options.Logger.Warn("ended an export of clients that was read too slowly", "caller", caller, "bytes", written, "took", took, "request_id", c.id[0])
			panic(http.ErrAbortHandler)
		}
		lines = lines[:0]
	}
	for e := range h.options.Clients.Export {
		if lines = append(append(lines, rule.ClientToJSON(&e.Client)...), '\n'); len(lines) >= exportPiece {
			write()
		}
	}
	write()
	return nil, nil
}

// exportPiece is how much of an export is written at once, in bytes.
const exportPiece = 64 << 10

// exportSpeed is how many bytes of an export must be read in a second, on average.
const exportSpeed = 256 << 10

var typeLines = []string{"application/x-ndjson"}
