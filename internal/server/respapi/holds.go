package respapi

import (
	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/trust"
)

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
