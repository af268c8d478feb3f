package respapi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
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

// read takes in what the client says, and reports whether it makes sense; otherwise it has
// answered. The texts outlive the command, because they are one copy of it.
func (w *work) read(known []string) bool {
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
		bad := ""
		switch {
		case at < 0:
			bad = unknownField(name, field, known)
		case i+1 == len(args):
			bad = name + ": it has no value; send names and values in pairs."
		case !named && seen&(1<<at) != 0:
			bad = name + ": it is given twice; send it once."
		default:
			value := all[args[i+1].from:args[i+1].to]
			if !utf8.ValidString(entry) || !utf8.ValidString(value) {
				bad = field + ": it is not UTF-8; encode it, for example in hexadecimal."
			} else {
				bad = w.asked.set(field, entry, value)
			}
		}
		if bad != "" {
			w.fail("BAD_FIELD", bad)
			return false
		}
		seen |= 1 << at
	}
	return true
}

func unknownField(name, field string, known []string) string {
	name = manage.Clip(strings.ToValidUTF8(name, "�"))
	if near := notation.Nearest(field, known); near != "" {
		if strings.HasSuffix(near, ".") {
			near += "NAME"
		}
		return fmt.Sprintf("%s: there is no such field; did you mean %s?", name, near)
	}
	return fmt.Sprintf("%s: there is no such field; this command has %s.", name, strings.Join(known, ", "))
}

// set takes in one field. The result says what is wrong with it.
func (q *question) set(field, entry, value string) (bad string) {
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
		var wrong *manage.FieldError
		if q.Priority, wrong = manage.Priority(value); wrong != nil {
			return wrong.Detail
		}
	case "method":
		q.Method = value
	case "host":
		q.Host = value
	case "path":
		q.Path = value
	case "charge":
		if q.charge = value; value != "always" {
			return fmt.Sprintf("charge: %q is unknown; send always, or leave it out.", manage.Clip(value))
		}
	case "hold":
		q.hold = value
	case "key":
		q.key = value
	case "rule":
		q.rule = value
	case "results":
		if q.results = value == "1" || value == "true"; !q.results && value != "0" && value != "false" {
			return fmt.Sprintf("results: %q is neither true nor false; send one of them, or 1 or 0.", manage.Clip(value))
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
	return ""
}

func (q *question) setNumber(field, unit, value string) (bad string) {
	n, ok := integer([]byte(value))
	if !ok {
		return fmt.Sprintf("%s%s: %q is not a whole number.", field, unit, manage.Clip(value))
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
	return ""
}

// put adds an entry, once. How many there may be is checked later; there are no more than
// arguments.
func put[V any](to *map[string]V, field, name string, value V) (bad string) {
	if *to == nil {
		*to = map[string]V{}
	}
	if _, twice := (*to)[name]; twice {
		return field + name + ": it is given twice; send it once."
	}
	(*to)[name] = value
	return ""
}

// request takes in the fields of a request, and reports whether they make sense.
func (w *work) request(known []string) bool {
	if !w.read(known) {
		return false
	}
	q := &w.asked
	if q.Cost != 0 && len(q.Costs) > 0 {
		w.fail("BAD_FIELD", "cost: it cannot be combined with the costs by unit; send one of them.")
		return false
	}
	if bad := q.Read(q.ip); bad != nil {
		w.reject(bad)
		return false
	}
	return true
}

// check answers WEIR.CHECK. That the store is unavailable is no error here: each rule has
// said what happens then.
func (w *work) check() {
	k := w.checker()
	if k == nil || !w.request(checkFields) {
		return
	}
	if w.asked.charge != "" {
		if w.judged(k, trust.Charge, w.server.options.Engine.Charge) {
			k.Charged(&w.verdict, nil)
		}
		return
	}
	w.follow()
	w.judged(k, trust.Check, w.server.options.Engine.Check)
}

// peek answers WEIR.PEEK.
func (w *work) peek() {
	if k := w.checker(); k != nil && w.request(requestFields) {
		w.judged(k, trust.Peek, w.server.options.Engine.Peek)
	}
}

// reserve answers WEIR.RESERVE.
func (w *work) reserve() {
	k := w.checker()
	if k == nil || !w.request(reserveFields) {
		return
	}
	if ttl, ok := w.ttl(); ok {
		w.judged(k, trust.Check, func(ctx context.Context, req *rule.Request, v *engine.Verdict) error {
			return w.server.options.Engine.Reserve(ctx, req, ttl, v)
		})
	}
}

// ttl is the time after which a hold expires. If it is out of range, ttl has answered.
func (w *work) ttl() (time.Duration, bool) {
	ttl, bad := manage.TTL(w.asked.ttl)
	if bad != nil {
		w.reject(bad)
	}
	return ttl, bad == nil
}

// judged lets the engine decide, if the client has a right, and answers with the verdict. It
// reports whether there is one.
func (w *work) judged(k *manage.Checker, right trust.Rights, ask manage.Asking) bool {
	if err := k.Ask(w.server.ctx, right, &w.asked.Request, &w.verdict, ask); err != nil {
		w.reject(err)
		return false
	}
	manage.TellVerdict(&w.writer, &w.verdict, w.asked.results)
	return true
}

// settle answers WEIR.SETTLE.
func (w *work) settle() {
	k := w.settler()
	if k == nil || !w.read(settleFields) {
		return
	}
	q := &w.asked
	bad := manage.CheckUnits("used", q.byUnit, 0)
	var used engine.Used = engine.ByUnit(q.byUnit)
	if q.used != nil {
		bad, used = manage.CheckUsed(*q.used), engine.Units(*q.used)
	}
	switch {
	case bad != nil:
		w.reject(bad)
	case q.used == nil && q.byUnit == nil:
		w.fail("BAD_FIELD", "used: required; send the units that were used, or WEIR.CANCEL if there are none.")
	case q.used != nil && q.byUnit != nil:
		w.fail("BAD_FIELD", "used: it cannot be combined with the units by name; send one of them.")
	default:
		w.hold(func(id weir.HoldID) (engine.Settled, error) {
			s, err := w.server.options.Engine.Settle(w.server.ctx, id, used)
			if err == nil {
				k.Settled(&s, used)
			}
			return s, err
		})
	}
}

// settler is who ends or extends a hold; nil if it has answered that they may not.
func (w *work) settler() *manage.Checker {
	k := w.checker()
	if k == nil {
		return nil
	}
	if err := k.Need(trust.Check); err != nil {
		w.reject(err)
		return nil
	}
	return k
}

// cancel answers WEIR.CANCEL.
func (w *work) cancel() {
	if w.settler() != nil && w.read(cancelFields) {
		w.hold(func(id weir.HoldID) (engine.Settled, error) { return w.server.options.Engine.Cancel(w.server.ctx, id) })
	}
}

// extend answers WEIR.EXTEND.
func (w *work) extend() {
	if w.settler() == nil || !w.read(extendFields) {
		return
	}
	if ttl, ok := w.ttl(); ok {
		w.hold(func(id weir.HoldID) (engine.Settled, error) {
			return w.server.options.Engine.Extend(w.server.ctx, id, ttl)
		})
	}
}

// hold answers a command about a hold.
func (w *work) hold(do func(weir.HoldID) (engine.Settled, error)) {
	id, bad := manage.HoldOf(w.asked.hold)
	if bad != nil {
		w.reject(bad)
		return
	}
	s, err := do(id)
	if err != nil {
		w.unavailable("a hold could not be settled", err)
	} else if f := calls.Hold(s.State); f != nil {
		w.reject(f)
	} else {
		manage.TellSettled(&w.writer, &s)
	}
}

// unavailable answers with an error. If it is none that a client can do something about, the
// store did not answer.
func (w *work) unavailable(what string, err error) {
	if calls.Of(err) == nil && w.server.ctx.Err() == nil {
		w.server.options.Logger.Warn(what, "error", err)
		err = fault.Hold()
	}
	w.reject(err)
}

// reset answers WEIR.RESET.
func (w *work) reset() { w.managed("WEIR.RESET", trust.Admin, w.resetKey) }

func (w *work) resetKey() {
	if !w.read(resetFields) {
		return
	}
	q := &w.asked
	if bad := manage.CheckClient(q.key, "", "user:alice", "WEIR.CHECK"); bad != nil {
		w.reject(bad)
		return
	}
	rules, err := w.server.options.Engine.Reset(w.server.ctx, q.rule, q.key)
	if err != nil {
		w.unavailable("store unavailable", err)
		return
	}
	w.Object("")
	w.Text("key", q.key)
	w.List("rules", len(rules))
	for _, id := range rules {
		w.text(id)
	}
	w.End(false)
}
