package respapi

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/trust"
	"github.com/weirhq/weir/rule"
)

// question is what a command says, in names and values.
type question struct {
	manage.Question

	ip      string
	charge  string
	results bool
	ttl     int64 // milliseconds
	hold    string
	used    *int64 // nil if it is not said, or by unit
	byUnit  map[string]int64
	key     string
	rule    string
}

// Fields that a command takes, with the units or entries of those that end with a dot.
var (
	requestFields = []string{
		"ip", "user", "api_key", "tier", "priority", "method", "host", "path", "cost", "results",
		"cost.", "headers.", "cookies.", "query.", "attributes.",
	}
	checkFields   = append([]string{"charge"}, requestFields...)
	reserveFields = append([]string{"ttl_ms"}, requestFields...)
	settleFields  = []string{"hold", "used", "used."}
	cancelFields  = []string{"hold"}
	extendFields  = []string{"hold", "ttl_ms"}
	resetFields   = []string{"key", "rule"}
)

// readQuestion takes in what the client says, if it makes sense. The texts outlive the command, because they
// are one copy of it.
func (w *work) readQuestion(known []string) error {
	w.asked = question{}
	all := string(w.r.buf[w.r.start : w.r.start+w.r.pos])
	args := w.r.args[1:]
	seen := uint32(0)
	for i := 0; i < len(args); i += 2 {
		name := all[args[i].from:args[i].to]
		field, entry, named := strings.Cut(name, ".")
		if named {
			field = name[:len(field)+1]
		}
		at := slices.Index(known, field)
		switch {
		case at < 0:
			return unknownField(name, field, known)
		case i+1 == len(args):
			return fault.Field(name, "it has no value; send names and values in pairs.")
		case !named && seen&(1<<at) != 0:
			return fault.Field(name, "it is given twice; send it once.")
		}
		value := all[args[i+1].from:args[i+1].to]
		if !utf8.ValidString(entry) || !utf8.ValidString(value) {
			return fault.Field(field, "it is not UTF-8; encode it, for example in hexadecimal.")
		}
		if err := w.asked.set(field, entry, value); err != nil {
			return err
		}
		seen |= 1 << at
	}
	return nil
}

func unknownField(name, field string, known []string) error {
	name = manage.Clip(strings.ToValidUTF8(name, "�"))
	if near := notation.Nearest(field, known); near != "" {
		if strings.HasSuffix(near, ".") {
			near += "NAME"
		}
		return fault.Field(name, "there is no such field; did you mean %s?", near)
	}
	return fault.Field(name, "there is no such field; this command has %s.", strings.Join(known, ", "))
}

// set takes in one field. The error says what is wrong with it.
func (q *question) set(field, entry, value string) (err error) {
	switch field {
	case "ip":
		q.ip = value
	case "user":
		q.User = value
	case "api_key":
		q.APIKey = value
	case "tier":
		q.Tier = value
	case "priority":
		q.Priority, err = manage.Priority(value)
	case "method":
		q.Method = value
	case "host":
		q.Host = value
	case "path":
		q.Path = value
	case "charge":
		if q.charge = value; value != "always" {
			return fault.Field(field, "%q is unknown; send always, or leave it out.", manage.Clip(value))
		}
	case "hold":
		q.hold = value
	case "key":
		q.key = value
	case "rule":
		q.rule = value
	case "results":
		if q.results = value == "1" || value == "true"; !q.results && value != "0" && value != "false" {
			return fault.Field(field, "%q is neither true nor false; send one of them, or 1 or 0.", manage.Clip(value))
		}
	case "headers.":
		return put(&q.Headers, field, entry, value)
	case "cookies.":
		return put(&q.Cookies, field, entry, value)
	case "query.":
		return put(&q.Parameters, field, entry, value)
	case "attributes.":
		return put(&q.Attributes, field, entry, value)
	default:
		return q.setNumber(field, entry, value)
	}
	return err
}

func (q *question) setNumber(field, unit, value string) error {
	n, ok := integer([]byte(value))
	if !ok {
		return fault.Field(field+unit, "%q is not a whole number.", manage.Clip(value))
	}
	switch field {
	case "cost":
		q.Cost = n
	case "ttl_ms":
		q.ttl = n
	case "used":
		q.used = &n
	case "cost.":
		return put(&q.Costs, field, unit, n)
	case "used.":
		return put(&q.byUnit, field, unit, n)
	}
	return nil
}

// put adds an entry, once. How many there may be is checked later; there are no more than
// arguments.
func put[V any](to *map[string]V, field, name string, value V) error {
	if *to == nil {
		*to = map[string]V{}
	}
	if _, twice := (*to)[name]; twice {
		return fault.Field(field+name, "it is given twice; send it once.")
	}
	(*to)[name] = value
	return nil
}

// request takes in the fields of a request, and returns who asks about it.
func (w *work) request(known []string) (*manage.Checker, error) {
	k, err := w.checker()
	if err != nil {
		return nil, err
	}
	if err := w.readQuestion(known); err != nil {
		return nil, err
	}
	if q := &w.asked; q.Cost != 0 && len(q.Costs) > 0 {
		return nil, fault.Field("cost", "it cannot be combined with the costs by unit; send one of them.")
	}
	return k, w.asked.Read(w.asked.ip)
}

// check answers WEIR.CHECK. That the store is unavailable is no error here: each rule has
// said what happens then.
func (w *work) check() error {
	k, err := w.request(checkFields)
	if err != nil {
		return err
	}
	if w.asked.charge == "" {
		w.follow()
		return w.judged(k, trust.Check, w.server.options.Engine.Check)
	}
	if err = w.judged(k, trust.Charge, w.server.options.Engine.Charge); err == nil {
		k.Charged(&w.verdict, nil)
	}
	return err
}

// peek answers WEIR.PEEK.
func (w *work) peek() error {
	k, err := w.request(requestFields)
	if err != nil {
		return err
	}
	return w.judged(k, trust.Peek, w.server.options.Engine.Peek)
}

// reserve answers WEIR.RESERVE.
func (w *work) reserve() error {
	k, err := w.request(reserveFields)
	if err != nil {
		return err
	}
	ttl, err := manage.TTL(w.asked.ttl)
	if err != nil {
		return err
	}
	return w.judged(k, trust.Check, func(ctx context.Context, req *rule.Request, v *engine.Verdict) error {
		return w.server.options.Engine.Reserve(ctx, req, ttl, v)
	})
}

// judged lets the engine decide, if the client has a right, and answers with the verdict.
func (w *work) judged(k *manage.Checker, right trust.Rights, ask manage.Asking) error {
	if err := k.Ask(w.server.ctx, right, &w.asked.Request, &w.verdict, ask); err != nil {
		return err
	}
	manage.TellVerdict(&w.writer, &w.verdict, w.asked.results)
	return nil
}

// settle answers WEIR.SETTLE.
func (w *work) settle() error {
	k, err := w.settler(settleFields)
	if err != nil {
		return err
	}
	q := &w.asked
	err = manage.CheckUnits("used", q.byUnit, 0)
	var used engine.Used = engine.ByUnit(q.byUnit)
	if q.used != nil {
		err, used = manage.CheckUsed(*q.used), engine.Units(*q.used)
	}
	switch {
	case err != nil:
		return err
	case q.used == nil && q.byUnit == nil:
		return fault.Field("used", "required; send the units that were used, or WEIR.CANCEL if there are none.")
	case q.used != nil && q.byUnit != nil:
		return fault.Field("used", "it cannot be combined with the units by name; send one of them.")
	}
	return w.hold(func(id weir.HoldID) (engine.Settled, error) {
		s, err := w.server.options.Engine.Settle(w.server.ctx, id, used)
		if err == nil {
			k.Settled(&s, used)
		}
		return s, err
	})
}

// settler takes in the fields of a command about a hold, and returns who may end or extend it.
func (w *work) settler(known []string) (*manage.Checker, error) {
	k, err := w.checker()
	if err == nil {
		err = k.Need(trust.Check)
	}
	if err != nil {
		return nil, err
	}
	return k, w.readQuestion(known)
}

// cancel answers WEIR.CANCEL.
func (w *work) cancel() error {
	if _, err := w.settler(cancelFields); err != nil {
		return err
	}
	return w.hold(func(id weir.HoldID) (engine.Settled, error) { return w.server.options.Engine.Cancel(w.server.ctx, id) })
}

// extend answers WEIR.EXTEND.
func (w *work) extend() error {
	if _, err := w.settler(extendFields); err != nil {
		return err
	}
	ttl, err := manage.TTL(w.asked.ttl)
	if err != nil {
		return err
	}
	return w.hold(func(id weir.HoldID) (engine.Settled, error) {
		return w.server.options.Engine.Extend(w.server.ctx, id, ttl)
	})
}

// hold answers a command about a hold.
func (w *work) hold(do func(weir.HoldID) (engine.Settled, error)) error {
	id, err := manage.HoldOf(w.asked.hold)
	if err != nil {
		return err
	}
	s, err := do(id)
	if err = w.trouble().Ended(&s, err); err == nil {
		manage.TellSettled(&w.writer, &s)
	}
	return err
}

// trouble is for what goes wrong below a command.
func (w *work) trouble() fault.Trouble {
	return fault.Trouble{Calls: &calls, Context: w.server.ctx, Logger: w.server.options.Logger, Name: slog.String("command", commands[w.running].name)}
}

// reset answers WEIR.RESET.
func (w *work) reset() error { return w.managed("WEIR.RESET", trust.Admin, w.resetKey) }

func (w *work) resetKey() error {
	if err := w.readQuestion(resetFields); err != nil {
		return err
	}
	q := &w.asked
	if err := manage.CheckClient(q.key, "", "user:alice", "WEIR.CHECK"); err != nil {
		return err
	}
	rules, err := w.server.options.Engine.Reset(w.server.ctx, q.rule, q.key)
	if err != nil && calls.Of(err) == nil {
		err = w.trouble().Unavailable(slog.LevelWarn, "store unavailable", err, fault.Hold())
	}
	if err != nil {
		return err
	}
	w.Object("")
	w.Text("key", q.key)
	w.List("rules", len(rules))
	for _, id := range rules {
		w.text(id)
	}
	w.End(false)
	return nil
}
