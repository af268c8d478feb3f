package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/clients"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/internal/server/httpapi"
	"github.com/weirhq/weir/rule"
)

func newClientsImport() *cobra.Command {
	var c clientFlags
	i := importer{answer: httpapi.ImportAnswer{Errors: []httpapi.ImportError{}}}
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Add and change the clients of a file",
		Long: `Add the clients of a file (- for standard input) to the directory, and change those that
are there. The file is NDJSON, or YAML or JSON with the list "clients"; clients can come in
any order. If a line has an error, nothing is sent. A line that the server does not accept
changes nothing, and is reported with its number. If an import is interrupted, run it
again: what is there already costs nothing.`,
		Example: `  weir clients import clients.ndjson --dry-run
  weir clients import clients.ndjson
  weir clients import clients.yaml --prune`,
		Args: arguments(1, 1, "a file of clients"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if i.server, err = c.client(cmd); err != nil {
				return err
			}
			if err := i.open(cmd, args[0]); err != nil {
				return err
			}
			err = i.run(cmd)
			if c.output == "json" {
				return errors.Join(writeJSON(cmd.OutOrStdout(), i.answer), err)
			}
			return errors.Join(i.say(cmd), err)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&i.dry, "dry-run", false, "change nothing, and show what would change")
	flags.BoolVar(&i.prune, "prune", false, "delete the clients that are not in the file")
	return c.addClientFlags(cmd)
}

// importer sends a file of clients.
type importer struct {
	server     *client
	dry, prune bool
	file       string
	lines      []importLine
	places     map[string]int // in lines, by the name of the client
	answer     httpapi.ImportAnswer
	unsaid     int // warnings beside those in the answer
	begun      time.Time
}

// importLine is a client of a file, or one to delete.
type importLine struct {
	number int // in the file
	name   string
	text   []byte
	parent string
	depth  int // of those above it in the file
}

// open reads the file, and prints its errors.
func (i *importer) open(cmd *cobra.Command, path string) error {
	name, in, closeFile, err := openClientsFile(cmd, path)
	if err != nil {
		return err
	}
	defer closeFile()
	i.file, i.places = name, map[string]int{}
	var problems rule.Problems
	add := func(number int, source []byte) {
		c, wrong := rule.ReadClient(name, source)
		if before, twice := i.places[c.Name]; twice && len(wrong) == 0 {
			wrong = rule.Problems{{File: name, Field: "client", Message: fmt.Sprintf("client: %q is in line %d, too; remove one of the two", c.Name, i.lines[before].number)}}
		}
		for j := range wrong {
			wrong[j].Line, wrong[j].Column, wrong[j].Excerpt = number, 1, ""
		}
		problems = append(problems, wrong...)
		if len(wrong) == 0 {
			i.places[c.Name] = len(i.lines)
			i.lines = append(i.lines, importLine{number: number, name: c.Name, text: rule.ClientToJSON(&c), parent: c.Parent})
		}
	}
	if err := eachClient(name, in, add); err != nil {
		return err
	}
	return unusable(cmd, name, "imported", problems)
}

// eachClient yields the clients of a file as JSON.
func eachClient(name string, in io.Reader, yield func(line int, source []byte)) error {
	r := bufio.NewReader(in)
	ending := strings.ToLower(filepath.Ext(name))
	if first, _ := r.Peek(r.Size()); ending != ".ndjson" && ending != ".jsonl" && clients.IsDocument(first) {
		source, err := io.ReadAll(io.LimitReader(r, rule.MaxDocument+1))
		if err != nil {
			return err
		}
		return clients.EachInDocument(name, source, yield)
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxClientLine)
	number := 0
	for lines.Scan() {
		number++
		if line := bytes.TrimSpace(lines.Bytes()); len(line) > 0 {
			yield(number, line)
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("%s:%d: the line is longer than %d bytes; write one client in each line", name, number+1, maxClientLine)
	}
	return lines.Err()
}

// maxClientLine is the maximum length of a line of NDJSON, in bytes.
const maxClientLine = 64 << 10

// run sends the lines, those above first, and then deletes what is not in the file.
func (i *importer) run(cmd *cobra.Command) error {
	i.begun = time.Now()
	if err := unusable(cmd, i.file, "imported", append(order(i.file, i.lines, i.places), i.pruned()...)); err != nil {
		return err
	}
	b := newBar(cmd.ErrOrStderr())
	defer b.clear()
	if err := i.send(cmd.Context(), &b, i.lines); err != nil {
		return i.unfinished(err)
	}
	if !i.prune {
		return i.wrong(cmd)
	}
	if len(i.lines) == 0 {
		return fmt.Errorf("%s has no clients, so --prune would delete all; delete them with weir clients delete", i.file)
	}
	others, err := i.others(cmd.Context())
	if err == nil && len(i.answer.Errors) > 0 {
		others, err = i.again(cmd.Context(), &b, others)
	}
	switch {
	case err != nil:
	case len(i.answer.Errors) > 0:
		return i.wrong(cmd)
	case i.dry: // none of them has clients below it that stay
		i.answer.Deleted += len(others)
	default:
		err = i.send(cmd.Context(), &b, others)
	}
	if err != nil {
		return i.unfinished(err)
	}
	return i.wrong(cmd)
}

// pruned are lines with a parent that would be deleted.
func (i *importer) pruned() (problems rule.Problems) {
	for _, l := range i.lines {
		if _, known := i.places[l.parent]; i.prune && l.parent != "" && !known {
			problems = append(problems, rule.Problem{File: i.file, Line: l.number, Column: 1, Field: "parent",
				Message: fmt.Sprintf("parent: %s is not in the file, so --prune would delete it; add it", l.parent)})
		}
	}
	return problems
}

// order sorts lines by how many of the others are above. It returns those that are above themselves.
func order(file string, lines []importLine, places map[string]int) (cycles rule.Problems) {
	for at := range lines {
		l := &lines[at]
		for above := l.parent; above != ""; l.depth++ {
			place, known := places[above]
			if !known {
				break
			}
			if l.depth == rule.MaxLine {
				cycles = append(cycles, rule.Problem{File: file, Line: l.number, Column: 1, Field: "parent",
					Message: fmt.Sprintf("parent: more than %d clients are above it, or a cycle; correct one parent", rule.MaxLine-1)})
				break
			}
			above = lines[place].parent
		}
	}
	slices.SortStableFunc(lines, func(a, b importLine) int { return cmp.Compare(a.depth, b.depth) })
	for at, l := range lines {
		places[l.name] = at
	}
	return cycles
}

// send sends lines in batches.
func (i *importer) send(ctx context.Context, b *bar, lines []importLine) error {
	for sent := 0; sent < len(lines); {
		body, assumed, n := i.batch(lines[sent:])
		var got httpapi.ImportAnswer
		if err := i.ask(ctx, body, assumed, &got); err != nil {
			return err
		}
		i.addAnswer(&got, assumed, lines[sent:sent+n])
		sent += n
		b.draw(float64(sent)/float64(len(lines)), "%s of %s", grouped(int64(sent)), grouped(int64(len(lines))))
	}
	return nil
}

// batch is as many of the first lines as one call takes. A dry run makes none of the batches before, so those that are above
// come first, as assumed.
func (i *importer) batch(lines []importLine) (body []byte, assumed, n int) {
	var above, own []byte
	there := map[string]bool{}
	for n < len(lines) {
		l, more, count := &lines[n], []byte(nil), 0
		for at, known := i.places[l.parent]; i.dry && known && !there[i.lines[at].name]; at, known = i.places[i.lines[at].parent] {
			there[i.lines[at].name] = true
			more, count = append(append(more, i.lines[at].text...), '\n'), count+1
		}
		if n > 0 && (assumed+count+n >= clients.MaxChanges || len(above)+len(more)+len(own)+len(l.text) >= httpapi.MaxImportBody) {
			break
		}
		above, own = append(above, more...), append(append(own, l.text...), '\n')
		there[l.name] = true
		assumed, n = assumed+count, n+1
	}
	return append(above, own...), assumed, n
}

// maxTries is how often a batch is sent while the server is busy.
const maxTries = 20

// ask sends a batch, which may be sent again: what is there already does not change.
func (i *importer) ask(ctx context.Context, body []byte, assumed int, into *httpapi.ImportAnswer) error {
	q := question{method: http.MethodPost, path: []string{"clients", "import"}, query: url.Values{}, body: body}
	if i.dry {
		q.query.Set("dry_run", "true")
		q.query.Set("assumed", strconv.Itoa(assumed))
	}
	for try := 1; ; try++ {
		_, err := i.server.ask(ctx, q, into)
		r, rejected := errors.AsType[*rejection](err)
		if !rejected || try == maxTries || r.Status != http.StatusTooManyRequests && r.Status != http.StatusServiceUnavailable {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// addAnswer counts what became of a batch. Its errors have the lines of the file.
func (i *importer) addAnswer(got *httpapi.ImportAnswer, assumed int, lines []importLine) {
	i.answer.Added += got.Added
	i.answer.Changed += got.Changed
	i.answer.Unchanged += got.Unchanged
	i.answer.Deleted += got.Deleted
	i.answer.Stale = got.Stale
	inFile := func(all []httpapi.ImportError) []httpapi.ImportError {
		for j := range all {
			if at := all[j].Line - assumed; at >= 1 && at <= len(lines) {
				all[j].Line = lines[at-1].number
			}
		}
		return all
	}
	i.answer.Errors = append(i.answer.Errors, inFile(got.Errors)...)
	if room := maxWarnings - len(i.answer.Warnings); len(got.Warnings) > room {
		i.unsaid += len(got.Warnings) - room
		got.Warnings = got.Warnings[:room]
	}
	i.answer.Warnings = append(i.answer.Warnings, inFile(got.Warnings)...)
}

// maxWarnings is how many lines an import warns of.
const maxWarnings = 100

// others are the clients of the server that are not in the file, those below first.
func (i *importer) others(ctx context.Context) (others []importLine, err error) {
	places := map[string]int{}
	err = i.server.download(ctx, question{path: []string{"clients", "export"}}, func(r io.Reader) error {
		return eachClient("export.ndjson", r, func(_ int, source []byte) {
			c, problems := rule.ReadClient("", source)
			if _, known := i.places[c.Name]; known || len(problems) > 0 {
				return
			}
			e := document.Element{Kind: document.Mapping}
			e.Add("client", document.NewText(c.Name))
			e.Add("deleted", document.NewTruth(true))
			places[c.Name] = len(others)
			others = append(others, importLine{name: c.Name, text: e.JSON(), parent: c.Parent})
		})
	})
	order("", others, places)
	slices.Reverse(others)
	return others, err
}

// again sends lines with a wrong parent together with the deletion of those below them: on these, the line cannot get its parent. It
// returns the others. What goes beyond one call is for another import.
func (i *importer) again(ctx context.Context, b *bar, others []importLine) (rest []importLine, err error) {
	failed := map[string]bool{}
	numbers := map[int]bool{}
	for _, e := range i.answer.Errors {
		if e.Field != "parent" {
			return others, nil
		}
		numbers[e.Line] = true
	}
	var lines []importLine
	for _, l := range i.lines {
		if numbers[l.number] {
			lines, failed[l.name] = append(lines, l), true
		}
	}
	kept := len(lines)
	for at := range slices.Backward(others) { // from above
		if l := others[at]; failed[l.parent] {
			lines, failed[l.name] = append(lines, l), true
		} else {
			rest = append(rest, l)
		}
	}
	if len(lines) == kept {
		return others, nil
	}
	slices.Reverse(lines[kept:])
	slices.Reverse(rest)
	i.answer.Errors = []httpapi.ImportError{}
	return rest, i.send(ctx, b, lines)
}

// unfinished is why not all was sent.
func (i *importer) unfinished(err error) error {
	if r, rejected := errors.AsType[*rejection](err); rejected && r.Status < 500 && r.Status != http.StatusTooManyRequests {
		return err // as it would be again
	}
	return fmt.Errorf("%w; run the import again to continue, because what is there already costs nothing", err)
}

// wrong prints the lines that the server has not accepted.
func (i *importer) wrong(cmd *cobra.Command) error {
	sayStale(cmd, i.answer.Stale)
	i.print(cmd, i.answer.Warnings, "warning: ")
	if i.unsaid > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s more; weir clients check FILE --rules RULES has all\n", notation.Count(i.unsaid, "warning"))
	}
	i.print(cmd, i.answer.Errors, "")
	if len(i.answer.Errors) == 0 {
		return nil
	}
	return fmt.Errorf("%s could not be imported, and changed nothing", notation.Count(len(i.answer.Errors), "line"))
}

func (i *importer) print(cmd *cobra.Command, lines []httpapi.ImportError, mark string) {
	slices.SortStableFunc(lines, func(a, b httpapi.ImportError) int { return cmp.Compare(a.Line, b.Line) })
	for _, e := range lines {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s:%d: %s%s\n", i.file, e.Line, mark, printable(e.Message))
	}
}

// say prints the numbers.
func (i *importer) say(cmd *cobra.Command) error {
	kind := ""
	if i.dry {
		kind = "dry run: "
	}
	a := &i.answer
	return say(cmd, "%s%s added, %s changed, %s deleted, %s unchanged, in %s\n", kind, grouped(int64(a.Added)), grouped(int64(a.Changed)),
		grouped(int64(a.Deleted)), grouped(int64(a.Unchanged)), span(time.Since(i.begun).Milliseconds()))
}
