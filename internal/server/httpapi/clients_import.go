package httpapi

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/clients"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
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
	Added     int            `json:"added"`
	Changed   int            `json:"changed"`
	Unchanged int            `json:"unchanged"`
	Deleted   int            `json:"deleted"`
	Errors    []ImportError  `json:"errors"`             // of lines that changed nothing
	Warnings  []ImportError  `json:"warnings,omitempty"` // of lines with something that has no effect under the rules in force
	Changes   []ImportChange `json:"changes,omitempty"`  // the first ones, of a dry run only
	Stale                    // of a dry run: nothing changes while the store is unavailable
}

// ImportError is what is wrong with a line.
type ImportError struct {
	Line    int    `json:"line"` // from 1; 0 is a client that prune deletes
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
}

// ImportChange is what would become of a client.
type ImportChange struct {
	Line   int          `json:"line"`             // as in ImportError
	Before *EntryAnswer `json:"before,omitempty"` // nil if it would be added
	After  *EntryAnswer `json:"after,omitempty"`  // nil if it would be deleted
}

// maxShown is how many changes a dry run shows.
const maxShown = 50

// batch is an import while its lines are read.
type batch struct {
	ImportAnswer
	h       *Handler
	c       *call
	dry     bool
	assumed int            // lines of a dry run that are not told of
	seen    map[string]int // the line of a client
	changes []clients.Change
	lines   []int // of the changes
}

// importClients answers POST /v1/clients/import: a line is a client as a file has it, or {"client": "…", "deleted": true}. Each line
// alone is imported or has an error. Those that change nothing cost nothing, so that an import can be repeated.
func (h *Handler) importClients(c *call) (any, error) {
	q := c.query("dry_run", "prune", "assumed")
	b := batch{ImportAnswer: ImportAnswer{Errors: []ImportError{}}, h: h, c: c, seen: map[string]int{}}
	prune := q.yes("prune")
	b.dry, b.assumed = q.yes("dry_run"), int(q.whole("assumed", 0, 0, clients.MaxChanges))
	if b.assumed > 0 && (!b.dry || prune) {
		q.wrong(fault.Field("assumed", "this is only for a dry run without prune; send dry_run=true."))
	}
	if q.err != nil {
		return nil, q.err
	}
	if err := b.readAll(); err != nil {
		return nil, err
	}
	var others []clients.Change
	more := 0
	if prune {
		var err error
		if others, more, err = b.others(); err != nil {
			return nil, err
		}
	}
	all, lines := b.changes, b.lines
	if len(b.Errors) == 0 && more == 0 { // or this is a dry run, which only counts what is deleted
		all, lines = append(all, others...), append(lines, make([]int, len(others))...)
	}
	err := b.make(all, lines)
	if err == nil && len(b.Errors) == 0 && more > 0 {
		b.Deleted += more
		for i := range others {
			b.done(0, &others[i], false)
		}
	}
	slices.SortStableFunc(b.Errors, func(x, y ImportError) int { return cmp.Compare(x.Line, y.Line) })
	b.Stale = h.stale()
	return b.ImportAnswer, err
}

// wrong keeps what is wrong with a line.
func (b *batch) wrong(line int, field, message string) {
	if line == 0 || line > b.assumed {
		b.Errors = append(b.Errors, ImportError{line, field, message})
	}
}

// readAll reads the body.
func (b *batch) readAll() error {
	body, err := b.c.readBody(MaxImportBody, nil)
	if err != nil {
		return err
	}
	count := 0
	read := func(number int, line []byte) {
		if count++; count <= clients.MaxChanges {
			b.readLine(number, line)
		}
	}
	if clients.IsDocument(body) {
		if err := b.c.makeRoom(int64(len(body))); err != nil {
			return err
		}
		if err := clients.EachInDocument("clients", body, read); err != nil {
			return fault.BadBody.Of("The body is no list of clients: %s", manage.Ended(err.Error()))
		}
	} else {
		number := 0
		for line := range bytes.Lines(body) {
			number++
			if line = bytes.TrimSpace(line); len(line) > 0 {
				read(number, line)
			}
		}
	}
	if count > clients.MaxChanges {
		return fault.Length("lines", count, clients.MaxChanges)
	}
	return nil
}

// readLine reads a line.
func (b *batch) readLine(number int, line []byte) {
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
	b.changes, b.lines = append(b.changes, change), append(b.lines, number)
}

// others are clients of the directory that no line has, and how many more there are. Nobody may belong to them.
func (b *batch) others() (others []clients.Change, more int, err error) {
	for i := range b.changes {
		switch c := &b.changes[i]; {
		case c.Delete:
			b.wrong(b.lines[i], "deleted", "deleted: prune deletes the clients that no line has; remove this line")
		case c.Client.Parent != "" && b.seen[c.Client.Parent] == 0:
			b.wrong(b.lines[i], "parent", fmt.Sprintf("parent: no line has %s, so prune would delete it; add it", c.Client.Parent))
		}
	}
	if len(b.seen) == 0 {
		return nil, 0, fault.BadBody.Of("No line has a client, so prune would delete all; delete them one by one.")
	}
	for e := range b.h.options.Clients.Export {
		switch {
		case b.seen[e.Name] > 0:
		case len(others) == clients.MaxChanges:
			more++
		default:
			others = append(others, clients.Change{Client: e.Client, Delete: true, Prune: true})
		}
	}
	if more > 0 && !b.dry {
		return nil, 0, fault.Field("prune", "this would delete %d clients; the maximum is %d at a time; use weir clients import --prune.", len(others)+more, clients.MaxChanges)
	}
	return others, more, nil
}

// make makes changes, or tries them.
func (b *batch) make(changes []clients.Change, lines []int) error {
	if len(changes) == 0 {
		return nil
	}
	var outcomes []clients.Outcome
	var err error
	if registry := b.h.options.Clients; b.dry {
		outcomes, err = registry.Try(b.c.r.Context(), changes)
	} else {
		outcomes, err = registry.Apply(b.c.r.Context(), b.c.author(), changes)
	}
	if err != nil {
		return b.h.trouble(b.c).Client(err)
	}
	for i := range outcomes {
		o, change, line := &outcomes[i], &changes[i], lines[i]
		switch wrong := calls.Of(o.Err); {
		case line > 0 && line <= b.assumed, change.Prune && o.Unchanged:
		case o.Unchanged || change.Delete && errors.Is(o.Err, clients.ErrNotFound):
			b.Unchanged++
		case o.Err == nil:
			b.done(line, change, o.Created)
		case wrong == nil:
			return b.h.trouble(b.c).Client(o.Err)
		default:
			b.wrong(line, wrong.Field, wrong.Detail)
		}
	}
	return nil
}

// done counts a change that was made, or would be.
func (b *batch) done(line int, change *clients.Change, created bool) {
	switch {
	case change.Delete:
		b.Deleted++
	case created:
		b.Added++
	default:
		b.Changed++
	}
	if err := b.h.options.Engine.Idle(&change.Client); err != nil && !change.Delete {
		b.Warnings = append(b.Warnings, ImportError{Line: line, Message: err.Error()})
	}
	if !b.dry || len(b.Changes) == maxShown {
		return
	}
	shown := ImportChange{Line: line}
	if was, known := b.h.options.Clients.Get(change.Client.Name); known {
		before := entryAnswer(&was)
		shown.Before = &before
	}
	if !change.Delete {
		after := entryAnswer(&clients.Entry{Client: change.Client})
		shown.After = &after
	}
	b.Changes = append(b.Changes, shown)
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
