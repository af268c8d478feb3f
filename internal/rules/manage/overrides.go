package manage

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/order"
	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/rule"
)

// OverrideOptions are options of Overrides.
type OverrideOptions struct {
	// Store keeps the overrides. Required.
	Store repo.Store

	// Engine applies the overrides. Required.
	Engine *engine.Engine

	// Clock returns the time of the engine's clock. Default the system clock.
	Clock func() time.Time

	// Logger receives errors of the place. Default slog.Default().
	Logger *slog.Logger
}

// Overrides manages the temporary overrides. Only one call at a time reads or changes them,
// and each change is in force on this instance before the next one. It is safe for
// concurrent use.
type Overrides struct {
	options OverrideOptions
	turn    order.Lock

	// The overrides that this instance knows. They stay in force while the place is
	// unavailable.
	list atomic.Pointer[OverrideList]

	// Only the call that has the turn uses these fields.
	revision repo.Revision
	source   []byte // the document of this revision
	trouble  bool   // the last read failed, and this was logged
}

// NewOverrides returns the overrides of a place. Call Look or Follow to put them into force.
func NewOverrides(o OverrideOptions) *Overrides {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.Logger = cmp.Or(o.Logger, slog.Default())
	all := &Overrides{options: o, revision: repo.Unknown}
	all.list.Store(new(OverrideList))
	return all
}

// Follow puts every change into force until the context ends. It returns the error of the
// context.
func (o *Overrides) Follow(ctx context.Context) error {
	return o.options.Store.Watch(ctx, func() { _ = o.Look(ctx) })
}

// Look reads the overrides and puts them into force. If they cannot be read, the previous
// overrides stay in force.
func (o *Overrides) Look(ctx context.Context) error {
	unlock, err := o.turn.Take(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	_, err = o.lookLocked(ctx)
	if errors.Is(err, repo.ErrChanged) {
		return nil // the next Look reads the change
	}
	if ctx.Err() == nil {
		o.reportLocked(err)
	}
	return err
}

// Snapshot writes the overrides that this instance knows, for a start while the place is
// unavailable.
func (o *Overrides) Snapshot(w io.Writer) error {
	source, err := o.list.Load().Encode(o.options.Clock())
	if err == nil {
		_, err = w.Write(source)
	}
	return err
}

// Restore puts the overrides of a snapshot into force, until the place can be read.
func (o *Overrides) Restore(r io.Reader) error {
	source, err := io.ReadAll(io.LimitReader(r, MaxOverrideBytes+1))
	if err != nil {
		return err
	}
	list, err := DecodeOverrides(source)
	if err == nil {
		o.install(list)
	}
	return err
}

// lookLocked reads the list, and puts it into force if it has changed. If the place has lost
// the document, as a Redis without persistence does, lookLocked writes it back.
func (o *Overrides) lookLocked(ctx context.Context) (OverrideList, error) {
	source, changed, err := o.options.Store.Read(ctx, o.revision)
	if err != nil || !changed {
		return *o.list.Load(), err
	}
	if len(source) == 0 && len(o.source) > 0 {
		return *o.list.Load(), o.options.Store.Write(ctx, "", o.source)
	}
	list, err := DecodeOverrides(source)
	if err != nil {
		return nil, err
	}
	o.applyLocked(source, list)
	return list, nil
}

func (o *Overrides) applyLocked(source []byte, list OverrideList) {
	o.revision, o.source = repo.RevisionOf(source), source
	o.install(list)
}

// install passes the active overrides to the engine, which ends each of them on time.
func (o *Overrides) install(list OverrideList) {
	now := o.options.Clock()
	var active []engine.Override
	for i := range list {
		if list[i].State(now) == OverrideActive {
			if e, err := forEngine(&list[i]); err == nil {
				active = append(active, e)
			}
		}
	}
	o.options.Engine.InstallOverrides(active)
	o.list.Store(&list)
}

func forEngine(o *Override) (engine.Override, error) {
	quota, err := rule.ParseQuota(o.Limits, o.Burst, o.Zone, o.Starts)
	return engine.Override{ID: o.ID, Rule: o.Rule, Key: o.Key, Quota: quota, Ends: o.EndsAt}, err
}

// reportLocked logs when reads begin to fail, and when they succeed again.
func (o *Overrides) reportLocked(err error) {
	switch {
	case err != nil && !o.trouble:
		o.options.Logger.Error("could not read the overrides; those known here stay in force until they end", "error", err)
	case err == nil && o.trouble:
		o.options.Logger.Info("the overrides can be read again")
	}
	o.trouble = err != nil
}

// change edits the latest list, writes it, and puts it into force on this instance. If
// another instance was faster, change tries again with the newer list.
func (o *Overrides) change(ctx context.Context, edit func(OverrideList) (OverrideList, error)) error {
	unlock, err := o.turn.Take(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	for range maxTries {
		if err := o.changeLocked(ctx, edit); !errors.Is(err, repo.ErrChanged) {
			return err
		}
	}
	return ErrBusy
}

func (o *Overrides) changeLocked(ctx context.Context, edit func(OverrideList) (OverrideList, error)) error {
	list, err := o.lookLocked(ctx)
	if err != nil {
		return err
	}
	if list, err = edit(list); err != nil {
		return err
	}
	source, err := list.Encode(o.options.Clock())
	if err != nil {
		return err
	}
	if err := o.options.Store.Write(ctx, o.revision, source); err != nil {
		return err
	}
	if list, err = DecodeOverrides(source); err != nil { // without the overrides that Encode dropped
		return err
	}
	o.applyLocked(source, list)
	return nil
}

// OverrideDraft describes an override to add.
type OverrideDraft struct {
	Rule, Key string
	Limits    []string
	Burst     int64
	Zone      string
	Starts    string
	Until     time.Time
	For       time.Duration // instead of Until
	Reason    string
	Author    string
}

// Add adds an override. It replaces an active override for the same rule and client. Errors
// are a *FieldError, an *engine.NoRuleError, an *engine.KeyError, a *weir.InvalidError,
// ErrManyOverrides, ErrBusy, or an error of the place.
func (o *Overrides) Add(ctx context.Context, d OverrideDraft) (Override, error) {
	now := o.now()
	if err := d.complete(now); err != nil {
		return Override{}, err
	}
	quota, err := rule.ParseQuota(d.Limits, d.Burst, d.Zone, d.Starts)
	if err != nil {
		return Override{}, err
	}
	key, err := o.options.Engine.ValidateOverride(engine.Override{Rule: d.Rule, Key: d.Key, Quota: quota})
	if err != nil {
		return Override{}, err
	}
	made := Override{
		ID: NewRequestID(), Rule: d.Rule, Key: key, Limits: quota.Texts(), Burst: d.Burst, Zone: d.Zone, Starts: d.Starts,
		Reason: d.Reason, Author: d.Author, CreatedAt: now, EndsAt: d.Until,
	}
	err = o.change(ctx, func(list OverrideList) (OverrideList, error) { return list.Add(made), nil })
	if err == nil {
		o.log("added an override", &made, made.Author)
	}
	return made, err
}

// log logs a change and its author. Secrets in the key are hashed.
func (o *Overrides) log(message string, one *Override, by string) {
	o.options.Logger.Info(message, "id", one.ID, "rule", one.Rule, "key", one.Key, "limits", one.Limits, "ends_at", one.EndsAt, "by", by, "reason", one.Reason)
}

// complete checks the fields that do not depend on the rules, and normalizes them.
func (d *OverrideDraft) complete(now time.Time) error {
	field := "until"
	if d.For != 0 {
		field, d.Until = "for", now.Add(d.For)
	}
	d.Until = d.Until.UTC().Truncate(time.Microsecond)
	long := len(d.Reason)
	d.Reason, d.Author = repo.OneLine(d.Reason, MaxOverrideReason), repo.OneLine(d.Author, repo.MaxAuthor)
	switch {
	case d.Rule == "":
		return fault("rule", "required; send the id of a rule.")
	case d.Until.IsZero():
		return fault(field, `required; send a time such as "2026-01-31T18:00:00Z", or for, such as "2h".`)
	case !d.Until.After(now):
		return fault(field, "%s is not in the future; send a later end.", d.Until.Format(time.RFC3339))
	case d.Until.Sub(now) > MaxOverrideLength:
		return fault(field, "%s is more than %d days ahead; for so long, add an override to the rule.", d.Until.Format(time.RFC3339), MaxOverrideLength/(24*time.Hour))
	case d.Reason == "":
		return fault("reason", "required; send the reason in one line.")
	case long > MaxOverrideReason:
		return fault("reason", "%d bytes exceed the maximum of %d; shorten it.", long, MaxOverrideReason)
	}
	if err := CheckClient(d.Key, "", "user:alice", "/v1/check"); err != nil {
		return err
	}
	return nil
}

// End ends an override now. An override that has already ended does not change. If there is
// no override with this id, the error is ErrNoOverride.
func (o *Overrides) End(ctx context.Context, id, author string) (ended Override, err error) {
	now := o.now()
	err = o.change(ctx, func(list OverrideList) (OverrideList, error) {
		next, found := list.EndNow(id, repo.OneLine(author, repo.MaxAuthor), now)
		if found == nil {
			return nil, ErrNoOverride
		}
		ended = *found
		return next, nil
	})
	if err == nil && ended.EndedAt.Equal(now) { // it had not ended before
		o.log("ended an override", &ended, author)
	}
	return ended, err
}

// now returns the time in whole microseconds, as the engine counts them.
func (o *Overrides) now() time.Time { return o.options.Clock().UTC().Truncate(time.Microsecond) }

// ErrNoOverride is returned for an override that never existed or is no longer kept.
var ErrNoOverride = errors.New("manage: there is no such override; it may be too old to be kept")
