package fault

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/clients"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/rules/ruleedit"
	"github.com/weirhq/weir/rule"
)

// Outage is when to come back while a store is unavailable: a failover takes two or three
// seconds, and earlier retries only add load.
const Outage = 5 * time.Second

// Calls is how a protocol names what a remedy needs.
type Calls struct {
	Token    string // where a token stands
	Rules    string // what lists the rules; "" if nothing does
	Versions string // what lists the versions that are kept
	Replace  string // what replaces a rule, whose id is %[1]s
	Base     string // what names a version, which is %[1]d
	Always   string // what charges a cost that may not fit
}

// Of returns the fault for an error of a package below, or nil if it depends on the call: a
// context that has ended, or a store that does not answer.
func (c *Calls) Of(err error) *Fault {
	var (
		known    *Fault
		right    *manage.RightError
		field    *manage.FieldError
		late     *manage.OutdatedError
		exists   *manage.ExistsError
		idle     *manage.UnappliedError
		readOnly *repo.ReadOnlyError
		noRule   *engine.NoRuleError
		client   *clients.Error
		key      *engine.KeyError
		invalid  *weir.InvalidError
		unusable *rule.InvalidError
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, manage.ErrNoToken):
		return TokenRequired.Of("A token is required; send %s with a token from the server's token file.", c.Token)
	case errors.Is(err, manage.ErrWrongToken):
		return InvalidToken.Of("The server does not know this token; use one from its token file.")
	case errors.Is(err, manage.ErrWrongSession), errors.Is(err, manage.ErrSessionOver):
		return TokenRequired.Of("The session is over, or its token was removed; sign in again.").Coded("session-over")
	case errors.As(err, &right):
		f := Forbidden.Of("%s", right.Detail())
		if right.Beyond == nil {
			f.Coded("", "holder", right.Holder, "has", right.Has, "needs", right.Needs)
		}
		return f
	case errors.As(err, &field):
		return BadField.Of("%s", field.Detail).In(field.Field)
	case errors.As(err, &noRule):
		return c.NoRule(noRule.ID).In("rule")
	case errors.As(err, &client):
		return ofClient(client)
	case errors.As(err, &key):
		return Field("key", "%s", manage.Sentence(key.Err))
	case errors.As(err, &invalid):
		kind := InvalidRequest
		if manage.IsMisstated(invalid) {
			kind = BadField
		}
		text := invalid.Field + ": " + manage.Ended(invalid.Reason)
		if err != error(invalid) { // which says more
			text = manage.Sentence(err)
		}
		return kind.Of("%s", text).In(invalid.Field)
	case errors.Is(err, counter.ErrRange):
		return OutOfRange.Of(manage.CounterRange)
	case errors.Is(err, counter.ErrFull):
		return CountersFull.Of(manage.CountersFull)
	case errors.As(err, &late):
		return VersionConflict.Of("The rules have changed since you read them; the latest version is %d. Read it, make your change again, and send "+c.Base+".", late.Current).
			At(late.Current).Coded("", "version", late.Current)
	case errors.As(err, &exists):
		return RuleExists.Of("The rule %[1]s already exists; choose another id, or "+c.Replace+".", exists.ID).Coded("", "rule", exists.ID)
	case errors.As(err, &idle):
		return NotApplied.Of("Version %d is stored, but this instance could not apply it and keeps its previous rules; weir's log has the cause under this request ID.", idle.Version).
			At(idle.Version).Coded("", "version", idle.Version)
	case errors.As(err, &readOnly):
		return RulesReadOnly.Of("weir cannot write the rules: %s. Change them where they come from, such as the ConfigMap, or let weir write the file; or keep them in Redis, with --rules redis, or rules.inRedis of the Helm chart.", readOnly.Why)
	case errors.Is(err, manage.ErrBusy):
		return Busy.Of("Too many other changes of the rules are in progress; try again.").After(time.Second).Coded("rules-busy")
	case errors.As(err, &unusable):
		f := BadRules.Of("%s", manage.Unusable(unusable.Problems))
		f.Problems = unusable.Problems
		return f
	}
	return nil
}

// ofClient is why a client was not changed; nil if its store is unavailable.
func ofClient(err *clients.Error) *Fault {
	said := manage.Sentence(errors.New(err.Message))
	switch err.Reason {
	case clients.NotFound:
		return NoClient.Of("There is no such client in the directory; add it over the HTTP API, or correct the name.")
	case clients.Mismatch:
		return VersionConflict.Of("%s", said).Coded("client-changed")
	case clients.HasMembers:
		return ClientInUse.Of("%s", said)
	case clients.Full:
		return ClientsFull.Of("%s", said)
	case clients.ReadOnly:
		return ClientsReadOnly.Of("The clients come from a file, so they cannot be changed here; change the file that --clients names.")
	case clients.Busy:
		return Busy.Of("%s", said).After(time.Second).Coded("clients-busy")
	case clients.Unavailable:
		return nil
	}
	return Field(err.Field, "%s", manage.Ended(err.Message))
}

// NoRule is a rule that is not there.
func (c *Calls) NoRule(id string) *Fault {
	remedy := "."
	if c.Rules != "" {
		remedy = "; " + c.Rules + "."
	}
	return NoRule.Of("There is no rule %q%s", manage.Clip(id), remedy).Coded("", "rule", id)
}

// OfVersion is Of for reading a version of the rules.
func (c *Calls) OfVersion(number int64, err error) *Fault {
	if errors.Is(err, repo.ErrNoVersion) {
		return NoVersion.Of("Version %d does not exist or is no longer kept; %s the versions that are.", number, c.Versions).Coded("", "version", number)
	}
	return c.Of(err)
}

// Hold is why nothing can be done about a hold in a state; nil if something was.
func (c *Calls) Hold(state weir.HoldState) *Fault {
	switch state {
	case weir.HoldUnknown:
		return HoldUnknown.Of("There is no such hold, or it ended too long ago; charge what is not charged yet with %s.", c.Always).In("hold")
	case weir.HoldExpired:
		return HoldExpired.Of("The hold has expired, and its units stay charged unless the rule has on_expiry: release; charge the rest with %s.", c.Always).In("hold")
	}
	return nil
}

// Ended is why a call about a hold came to nothing; nil if it did not.
func (t Trouble) Ended(s *engine.Settled, err error) error {
	if err != nil && t.Of(err) == nil {
		return t.Unavailable(slog.LevelWarn, "a hold could not be settled", err, Hold())
	}
	if f := t.Hold(s.State); f != nil && err == nil {
		return f
	}
	return err
}

// TimedOut is that a call of some sort ended before it was answered.
func TimedOut(what string) *Fault {
	return Busy.Of("The %s timed out before it was answered; try again.", what).Coded("timed-out").After(time.Second)
}

// Store is that the store did not answer. A change may have been made.
func Store(changes bool) *Fault {
	if changes {
		return StoreUnavailable.Of(manage.CounterUnknown).Coded("change-unknown").After(Outage)
	}
	return StoreUnavailable.Of(manage.CountersGone).After(Outage)
}

// Hold is that the store of a hold did not answer, which ends once, however often it is asked.
func Hold() *Fault { return StoreUnavailable.Of("The store is unavailable; try again.").After(Outage) }

// Internal is that a call has panicked; the log has more, under an id that stands in what.
func Internal(under string) *Fault {
	return InternalError.Of("An internal error occurred; weir's log has the cause under %s.", cmp.Or(under, "this request ID"))
}

// Length is what is wrong with the length of a list; nil if nothing is.
func Length(list string, n, most int) error {
	switch {
	case n == 0:
		return Field(list, "required; send at least one.").Coded("required")
	case n > most:
		return Field(list, "%d items exceed the maximum of %d; send fewer.", n, most).Coded("too-many", "max", most)
	}
	return nil
}

// Each reads a list of a call. An error names the place in the list.
func Each[M, T any](list string, all []M, most int, read func(M, func(field string) string) (T, error)) ([]T, error) {
	if err := Length(list, len(all), most); err != nil {
		return nil, err
	}
	found := make([]T, len(all))
	for i, m := range all {
		var err error
		if found[i], err = read(m, manage.Within(list, i)); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Trouble turns what goes wrong below a call into what its client is told. Causes that clients cannot
// do anything about are only logged, because they may contain internal paths and servers.
type Trouble struct {
	*Calls
	Context context.Context
	Logger  *slog.Logger
	Name    slog.Attr // of what is called, as the protocol has it
	ID      string    // of the call; "" if it has none
}

// Unavailable returns the fault of a call that needs something that is unavailable, unless the
// call itself has ended.
func (t Trouble) Unavailable(level slog.Level, what string, err error, f *Fault) error {
	if own := t.Context.Err(); own != nil && errors.Is(err, own) {
		return own
	}
	t.log(level, what, err)
	return f.After(Outage)
}

func (t Trouble) log(level slog.Level, what string, err error) {
	attrs := []slog.Attr{t.Name, slog.Any("error", err)}
	if t.ID != "" {
		attrs = slices.Insert(attrs, 1, slog.String("request_id", t.ID))
	}
	t.Logger.LogAttrs(t.Context, level, what, attrs...)
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

// Client is why a client was not changed.
func (t Trouble) Client(err error) error {
	if f := t.Of(err); f != nil {
		return f
	}
	if errors.Is(err, clients.ErrLost) {
		return t.Unavailable(slog.LevelError, "cannot change clients", err,
			StoreUnavailable.Of("%s", manage.Sentence(clients.ErrLost)).Coded("clients-lost"))
	}
	return t.Unavailable(slog.LevelError, "cannot change clients", err,
		StoreUnavailable.Of("The store of the clients is unavailable, so it is not known whether the change was made; read the client, and try again.").Coded("change-unknown"))
}

// Clients is that the directory of clients was not read yet.
func (t Trouble) Clients(err error) error {
	return t.Unavailable(slog.LevelWarn, "clients not loaded", err,
		StoreUnavailable.Of("The clients are not loaded yet, because their store is unavailable; try again.").Coded("clients-unavailable"))
}

// Seldom lets one line a second into the log, because clients can cause some trouble at any rate.
type Seldom struct{ last atomic.Int64 } // in Unix seconds

func (s *Seldom) next(at time.Time) bool {
	before, now := s.last.Load(), at.Unix()
	return before != now && s.last.CompareAndSwap(before, now)
}

// Store is why the store of counters or queues did not do what it was asked; nil if it did. The log is told
// that it is full, or what, seldom.
func (t Trouble) Store(what string, changes bool, err error, log *Seldom, now time.Time) error {
	var answer error
	switch left := t.Context.Err(); {
	case errors.Is(err, counter.ErrFull):
		what, answer = "counters full; new names are rejected", err
	case err == nil || t.Of(err) != nil:
		return err
	case left != nil:
		return left
	default:
		answer = Store(changes)
	}
	if log.next(now) {
		t.log(slog.LevelWarn, what, err)
	}
	return answer
}
