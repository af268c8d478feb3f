package alert

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

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
