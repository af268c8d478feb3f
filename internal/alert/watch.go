package alert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/stats/archive"
)

// Source is the source of the data: a *stats.Recorder.
type Source interface {
	Subscribe() (*stats.Subscription, error)
	Replay(ctx context.Context, from, to time.Time, tell func(stats.Live)) error
	Top(context.Context, stats.TopQuery) (*stats.Top, error)
	Denials
	Archive() archive.Store // stores silences as notes, which all instances share
}

// Options configures a watcher.
type Options struct {
	// Source is the source of the data. Required.
	Source Source

	// Checks are the checks to run. Default nil, which selects Defaults().
	Checks []Check

	// Notifiers are notified, besides the log. Default none.
	Notifiers []Notifier

	// Instance is the name of this process in alerts. Default none.
	Instance string

	// Link returns the URL of a page with details about an alert. Default none.
	Link func(Alert) string

	// Clock returns the time. Default time.Now.
	Clock func() time.Time

	// Logger receives every alert, and errors of notifiers. Default slog.Default().
	Logger *slog.Logger
}

// Watcher evaluates checks and sends notifications.
type Watcher struct {
	options    Options
	evaluator  *Evaluator
	list       *List
	recipients []*recipient
	looked     time.Time // when it was asked what is not known by the second
	leads      bool
	apart      bool // silences cannot be shared just now
	running    atomic.Bool
}

// New returns a watcher; call Run to start it.
func New(o Options) (*Watcher, error) {
	if o.Source == nil {
		return nil, errors.New("alert: Options.Source is required; use a stats.Recorder")
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Link == nil {
		o.Link = func(Alert) string { return "" }
	}
	o.Logger = cmp.Or(o.Logger, slog.Default())
	e, err := NewEvaluator(o.Checks)
	if err != nil {
		return nil, err
	}
	w := &Watcher{options: o, evaluator: e, list: newList(o.Clock, o.Source.Archive())}
	for _, n := range o.Notifiers {
		w.recipients = append(w.recipients, &recipient{Notifier: n, alerts: newOutbox(n.Name(), "alerts", o.Logger), warnings: newOutbox(n.Name(), "warnings", o.Logger)})
	}
	return w, nil
}

// List returns the list of alerts.
func (w *Watcher) List() *List { return w.list }

// term is for how long an instance is the one that sends, unless it asks again.
const term = 30 * time.Second

// Run watches until the context ends. It starts with the recorded past, so that a
// restart neither loses an alert nor sends it twice; only hot keys are detected again.
func (w *Watcher) Run(ctx context.Context) error {
	if w.running.Swap(true) {
		return errors.New("alert: the watcher already runs; call Run once")
	}
	follow, err := w.options.Source.Subscribe()
	if err != nil {
		return fmt.Errorf("alert: %w", err)
	}
	defer follow.Close()
	var senders sync.WaitGroup
	defer senders.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, r := range w.recipients {
		senders.Go(func() { r.alerts.run(ctx) })
		senders.Go(func() { r.warnings.run(ctx) })
	}
	w.share(ctx)
	now := w.options.Clock()
	err = w.options.Source.Replay(ctx, now.Add(-w.evaluator.Reach()), now, func(l stats.Live) {
		if changed := w.evaluator.Add(Sample{Time: l.Time, Frame: l.Frame}); len(changed) > 0 {
			w.list.update(w.sign(w.evaluator.Firing()), w.sign(changed))
		}
	})
	if err != nil && ctx.Err() == nil {
		w.options.Logger.Warn("could not read the history of alerts; alerts start without it", "error", err)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case l, open := <-follow.C:
			if !open {
				return nil
			}
			w.warn(l.Warned)
			w.takeSecond(ctx, l)
		}
	}
}

// takeSecond takes a second, and every ten seconds asks the others. Silences come before the
// lead: who has become the one that sends must know of what to be silent.
func (w *Watcher) takeSecond(ctx context.Context, l stats.Live) {
	s := Sample{Time: l.Time, Frame: l.Frame}
	if now := w.options.Clock(); now.Sub(w.looked) >= resolution || now.Before(w.looked) {
		w.looked = now
		s.Hot = w.hot(ctx)
		w.share(ctx)
		w.lead(ctx)
	}
	w.step(s)
}

// share brings the silences of this instance and those of the others together.
func (w *Watcher) share(ctx context.Context) {
	err := w.list.share(ctx)
	if ctx.Err() != nil {
		return
	}
	switch apart := err != nil; {
	case apart && !w.apart:
		w.options.Logger.Warn("silences cannot be shared; each applies only on instances that have it", "error", err)
	case !apart && w.apart:
		w.options.Logger.Info("silences are shared again")
	}
	w.apart = err != nil
}

// hot returns the key with the most denials in the last minute that somebody can act on, and how
// many are of others.
func (w *Watcher) hot(ctx context.Context) *Hot {
	top, err := w.options.Source.Top(ctx, stats.TopQuery{By: stats.ByDenied, Window: stats.LastMinute, N: archive.MaxRankedAll})
	if err != nil || len(top.Keys) == 0 {
		return &Hot{}
	}
	hot := &Hot{All: top.Total, Rest: top.Total - single(top.Keys, top.Total)}
	if a, err := Accuse(ctx, w.options.Source, top.From, top.To); err == nil {
		hot.Decided = a.DecidedOf(Surely)
		if a.Client != nil {
			hot.Key, hot.Rule, hot.Denied = a.Client.Key, RuleOf(a.Client), Surely(a.Client)
		}
	}
	return hot
}

// lead reports whether this instance sends alerts. If the archive is unavailable, it
// sends: twice is better than not at all.
func (w *Watcher) lead(ctx context.Context) {
	leads, err := w.options.Source.Archive().Lead(ctx, "alerts", term)
	leads = leads || err != nil
	if leads && !w.leads {
		// Who did so before may have died before it told of the last ones.
		recent := w.sign(w.evaluator.Firing())
		for _, a := range w.list.Past() {
			if w.options.Clock().Sub(a.EndsAt) < term {
				recent = append(recent, a)
			}
		}
		w.leads = true
		w.tell(recent, w.recipients...)
	}
	w.leads = leads
}

// step evaluates a second.
func (w *Watcher) step(s Sample) {
	changed := w.sign(w.evaluator.Add(s))
	firing := w.sign(w.evaluator.Firing())
	w.list.update(firing, changed)
	for _, a := range changed {
		w.log(a)
	}
	if !w.leads {
		return
	}
	w.tell(changed, w.recipients...)
	now := w.options.Clock()
	for _, r := range w.recipients {
		n, ok := r.Notifier.(Repeater)
		if ok && len(firing) > 0 && now.Sub(r.repeated) >= n.Repeat() {
			r.repeated = now
			w.tell(firing, r)
		}
	}
}

// sign says who tells of alerts, and where more is to be seen.
func (w *Watcher) sign(alerts []Alert) []Alert {
	for i := range alerts {
		alerts[i].Instance, alerts[i].URL = w.options.Instance, w.options.Link(alerts[i])
	}
	return alerts
}

// tell sends alerts that are not silenced.
func (w *Watcher) tell(alerts []Alert, to ...*recipient) {
	audible := attributed(w.list.audible(alerts))
	if len(audible) == 0 {
		return
	}
	for _, r := range to {
		r.alerts.putMessage(func(ctx context.Context) error { return r.Notify(ctx, audible) })
	}
}

// attributed are alerts whose sentence also says who tells of them: it may be all that somebody
// gets to read.
func attributed(alerts []Alert) []Alert {
	alerts = slices.Clone(alerts)
	for i := range alerts {
		if a := &alerts[i]; a.Instance != "" {
			a.Summary = strings.TrimSuffix(a.Summary, ".") + " (reported by " + a.Instance + ")."
		}
	}
	return alerts
}

func (w *Watcher) log(a Alert) {
	level := slog.LevelWarn
	if a.State == Resolved {
		level = slog.LevelInfo
	}
	w.options.Logger.Log(context.Background(), level, "alert "+string(a.State),
		"alert", a.ID, "summary", a.Summary, "value", a.Value, "threshold", a.Threshold, "rule", a.Rule, "since", a.StartsAt)
}
