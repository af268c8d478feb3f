package fault

import (
	"context"
	"errors"
	"log/slog"

	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/rules/ruleedit"
)

// Trouble turns what goes wrong below a call into what its client is told. Causes that clients cannot
// do anything about are only logged, because they may contain internal paths and servers.
type Trouble struct {
	*Calls
	Context context.Context
	Logger  *slog.Logger
	Name    slog.Attr // of what is called, as the protocol has it
	ID      string    // of the call
}

// Unavailable returns the fault of a call that needs something that is unavailable, unless the
// call itself has ended.
func (t Trouble) Unavailable(level slog.Level, what string, err error, f *Fault) error {
	if own := t.Context.Err(); own != nil && errors.Is(err, own) {
		return own
	}
	t.Logger.Log(t.Context, level, what, t.Name, "request_id", t.ID, "error", err)
	return f.After(Outage)
}

// Rules is that the rules could not be read or written.
func (t Trouble) Rules(err error) error {
	return t.Unavailable(slog.LevelError, "cannot read or write rules", err,
		RulesUnavailable.Of("The rules cannot be read or written now; weir's log has the cause under this request ID. If this was a change, read the rules to see whether it was made."))
}

// Version is why a version of the rules could not be read; nil if it was.
func (t Trouble) Version(number int64, err error) error {
	if f := t.OfVersion(number, err); f != nil {
		return f
	}
	if err != nil {
		err = t.Rules(err)
	}
	return err
}

// Change is why a change of the rules did not take place, or is not in force. It was about the rule with
// an id, if it was about one.
func (t Trouble) Change(id string, err error) error {
	if idle, ok := errors.AsType[*manage.UnappliedError](err); ok {
		t.Logger.Error("rules stored but not applied", "version", idle.Version, "request_id", t.ID, "error", idle.Err)
	}
	if errors.Is(err, ruleedit.ErrNoRule) {
		return t.NoRule(id)
	}
	if f := t.Of(err); f != nil {
		return f
	}
	return t.Rules(err)
}

// Key is why a client could not be looked up or reset.
func (t Trouble) Key(err error) error {
	f := t.Of(err)
	switch {
	case f == nil:
		return t.Unavailable(slog.LevelWarn, "store unavailable", err, Store(false))
	case f.Kind == BadField:
		f.Field = "key"
	}
	return f
}
