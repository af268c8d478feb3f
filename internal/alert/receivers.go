package alert

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/stats/archive"
)

// Headers of a webhook.
const (
	TimestampHeader = "Weir-Timestamp" // Unix seconds
	SignatureHeader = "Weir-Signature" // sha256= and the HMAC in hexadecimal
)

// Message is the body of a webhook.
type Message struct {
	Version  int       `json:"version"` // 1
	Alerts   []Alert   `json:"alerts"`  // empty in a message with warnings
	Warnings []Warning `json:"warnings,omitempty"`
	More     int64     `json:"more,omitempty"` // warnings of the same time that are not listed
}

// Webhook posts alerts as JSON.
type Webhook struct {
	poster
	secret []byte
}

// NewWebhook returns a notifier for a webhook. The secret signs every message, so that the
// receiver can verify it; see Verify. Without one, messages are not signed.
func NewWebhook(address string, secret []byte) (*Webhook, error) {
	p, err := newPoster("webhook", address)
	return &Webhook{p, secret}, err
}

// poster is what notifiers that post have in common.
type poster struct {
	url, name string
	client    *http.Client
	clock     func() time.Time
}

// newPoster checks the address. Its client follows no redirects: what is meant for one host
// is not for another.
func newPoster(kind, address string) (poster, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return poster{}, errors.New("alert: invalid URL; write it as https://host/path") // it may have a password
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return poster{address, kind + " " + u.Host, client, time.Now}, nil
}

// Name implements [Notifier]. It has no path, which may be a secret.
func (p *poster) Name() string { return p.name }

// Notify implements [Notifier].
func (w *Webhook) Notify(ctx context.Context, alerts []Alert) error {
	return w.send(ctx, Message{Version: 1, Alerts: alerts})
}

// signed are the headers of a message.
func (w *Webhook) signed(body []byte) http.Header {
	header := http.Header{}
	if len(w.secret) > 0 {
		at := strconv.FormatInt(w.clock().Unix(), 10)
		header.Set(TimestampHeader, at)
		header.Set(SignatureHeader, sign(w.secret, at, body))
	}
	return header
}

// sign also covers the time, so that an old message cannot be sent again.
func sign(secret []byte, at string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	io.WriteString(mac, at+".")
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// maxAnswer is how much of an answer is read, so that the connection can be used again.
const maxAnswer = 64 << 10

// post sends JSON. What the receiver will never take is a *PermanentError.
func (p *poster) post(ctx context.Context, header http.Header, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return &PermanentError{err}
	}
	req.Header = header
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "weir")
	resp, err := p.client.Do(req)
	if err != nil {
		return unwrapURL(err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return nil
	}
	err = fmt.Errorf("alert: the receiver returned %s: %s", resp.Status, clip(answer))
	switch {
	case resp.StatusCode >= 500, resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode == http.StatusRequestTimeout:
		return err
	}
	return &PermanentError{err}
}

// unwrapURL takes the URL out of an error: it may have a secret.
func unwrapURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return fmt.Errorf("alert: %w", err)
}

func clip(answer []byte) string {
	text := strings.ToValidUTF8(string(answer[:min(len(answer), 200)]), "?")
	return strings.Join(strings.Fields(text), " ")
}

// Alertmanager sends alerts to Prometheus Alertmanager with version 2 of its API.
type Alertmanager struct{ poster }

// NewAlertmanager returns a notifier for the Alertmanager at an address such as
// http://127.0.0.1:9093.
func NewAlertmanager(address string) (*Alertmanager, error) {
	p, err := newPoster("alertmanager", address)
	p.url = strings.TrimSuffix(p.url, "/") + "/api/v2/alerts"
	return &Alertmanager{p}, err
}

// Repeat implements [Repeater]: Alertmanager resolves an alert that is not repeated.
func (m *Alertmanager) Repeat() time.Duration { return time.Minute }

// lease is for how long Alertmanager believes in an alert without hearing of it.
const lease = 5 * time.Minute

// posted is an alert as Alertmanager wants it.
type posted struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      time.Time         `json:"endsAt"`
	URL         string            `json:"generatorURL,omitempty"`
}

// Notify implements [Notifier].
func (m *Alertmanager) Notify(ctx context.Context, alerts []Alert) error {
	all := make([]posted, len(alerts))
	for i, a := range alerts {
		labels := map[string]string{"severity": "warning", "alertname": "weir_" + string(a.Kind)}
		if a.Subject != "" {
			labels["subject"] = strings.ToValidUTF8(a.Subject, "?")
		}
		if a.Rule != "" {
			labels["rule"] = a.Rule
		}
		all[i] = posted{
			Labels: labels, Annotations: map[string]string{"summary": a.Summary},
			StartsAt: a.StartsAt, EndsAt: m.clock().Add(lease), URL: a.URL,
		}
		if a.Instance != "" {
			// No label: the alert is the same when another instance goes on to tell of it.
			all[i].Annotations["instance"] = a.Instance
		}
		if a.State == Resolved {
			all[i].EndsAt = a.EndsAt
		}
	}
	body, err := json.Marshal(all)
	if err != nil {
		return &PermanentError{err}
	}
	return m.post(ctx, http.Header{}, body)
}

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

	Display *archive.WarningDisplay `json:"display,omitempty"` // of a limit of money: used and limit as people read them
}

// WarningNotifier is a [Notifier] that also sends warnings. Each instance sends those that it
// has seen, at most one notification a second, with at most archive.MaxWarnings of them.
type WarningNotifier interface {
	Notifier
	NotifyWarnings(ctx context.Context, all []Warning, more int64) error // more happened at the same time, and are not listed
}

// NotifyWarnings implements [WarningNotifier].
func (w *Webhook) NotifyWarnings(ctx context.Context, all []Warning, more int64) error {
	return w.send(ctx, Message{Version: 1, Alerts: []Alert{}, Warnings: all, More: more})
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
	out := make([]Warning, len(all.List))
	for i, x := range all.List {
		x.Show()
		out[len(all.List)-1-i] = Warning{ // in the order in which they happened
			At: x.At.Time(), Rule: x.Rule, Key: x.Key, Policy: x.Policy, Threshold: x.Threshold,
			Used: x.Used, Limit: x.Limit, ResetAt: x.ResetAt.Time(), Instance: w.options.Instance, Display: x.Display,
		}
	}
	for _, r := range w.recipients {
		if n, ok := r.Notifier.(WarningNotifier); ok {
			r.warnings.putMessage(func(ctx context.Context) error { return n.NotifyWarnings(ctx, out, all.N-int64(len(out))) })
		}
	}
}
