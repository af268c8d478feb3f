package alert

import (
	"context"
	"encoding/json"
	"time"

	"github.com/weirhq/weir/stats/archive"
)

// Warning is that a client has reached a threshold of a rule, in a notification. It is not an
// alert: it does not end, and there may be many at once.
type Warning struct {
	At        time.Time `json:"at"`
	Rule      string    `json:"rule"`
	Key       string    `json:"key"`       // identifies the client, as in "user:alice"
	Policy    string    `json:"policy"`    // the limit as the rule defines it, such as "100/1m"
	Threshold int64     `json:"threshold"` // percent
	Used      int64     `json:"used"`
	Limit     int64     `json:"limit"`
	ResetAt   time.Time `json:"reset_at"`           // when the client is fully reset, if it makes no more requests
	Instance  string    `json:"instance,omitempty"` // the instance that reports it
}

// Warnings are the warnings of one notification.
type Warnings struct {
	List []Warning
	More int64 // further ones that happened at the same time, and are not listed
}

// WarningNotifier is a [Notifier] that also sends warnings. Each instance sends those that it
// has seen, at most one notification a second, with at most archive.MaxWarnings of them.
type WarningNotifier interface {
	Notifier
	NotifyWarnings(ctx context.Context, w Warnings) error
}

// NotifyWarnings implements [WarningNotifier].
func (w *Webhook) NotifyWarnings(ctx context.Context, warnings Warnings) error {
	return w.send(ctx, Message{Version: 1, Alerts: []Alert{}, Warnings: warnings.List, More: warnings.More})
}

func (w *Webhook) send(ctx context.Context, m Message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return &PermanentError{err}
	}
	return w.post(ctx, w.signed(body), body)
}

// warn sends the warnings of this instance, whether or not it leads: no other has seen them.
func (w *Watcher) warn(all archive.Warned) {
	if all.N == 0 {
		return
	}
	out := Warnings{List: make([]Warning, len(all.List)), More: all.N - int64(len(all.List))}
	for i, x := range all.List {
		out.List[len(all.List)-1-i] = Warning{ // in the order in which they happened
			At: x.At.Time(), Rule: x.Rule, Key: x.Key, Policy: x.Policy, Threshold: x.Threshold,
			Used: x.Used, Limit: x.Limit, ResetAt: x.ResetAt.Time(), Instance: w.options.Instance,
		}
	}
	for _, r := range w.recipients {
		if n, ok := r.Notifier.(WarningNotifier); ok {
			r.warnings.put(func(ctx context.Context) error { return n.NotifyWarnings(ctx, out) })
		}
	}
}
