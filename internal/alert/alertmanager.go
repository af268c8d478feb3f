package alert

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"time"
)

// AlertmanagerOptions configures a notifier for Alertmanager.
type AlertmanagerOptions struct {
	// URL is the address of Alertmanager, as in http://127.0.0.1:9093. Required.
	URL string

	// Labels are added to every alert. Default none.
	Labels map[string]string

	// Client sends the requests. Default as for a webhook.
	Client *http.Client

	// Clock returns the time. Default time.Now.
	Clock func() time.Time
}

// Alertmanager sends alerts to Prometheus Alertmanager with version 2 of its API.
type Alertmanager struct {
	poster
	labels map[string]string
}

// NewAlertmanager returns a notifier for Alertmanager.
func NewAlertmanager(o AlertmanagerOptions) (*Alertmanager, error) {
	p, err := newPoster("alertmanager", o.URL, o.Client, o.Clock)
	if err != nil {
		return nil, err
	}
	p.url = strings.TrimSuffix(p.url, "/") + "/api/v2/alerts"
	return &Alertmanager{p, o.Labels}, nil
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
		labels := map[string]string{"severity": "warning"}
		maps.Copy(labels, m.labels)
		labels["alertname"] = "weir_" + string(a.Kind)
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
