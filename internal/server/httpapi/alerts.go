package httpapi

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/alert"
	"github.com/weirhq/weir/internal/fault"
)

var alertRoutes = []route{
	{"GET", "/v1/alerts", reading, watching(withoutQuery((*Handler).getAlerts))},
	{"POST", "/v1/alerts/silences", changing, watching(taking(maxAlertBody, (*Handler).silence))},
	{"POST", "/v1/alerts/test", changing, watching(withoutQuery((*Handler).testAlerts))},
}

var watching = having(func(o *Options) bool { return o.Alerts != nil }, "alerts-off", "Alerts are not enabled on this server; they need statistics.")

// Bounds of POST /v1/alerts/silences.
const (
	MaxSilence   = 30 * 24 * time.Hour
	maxComment   = 500  // bytes
	maxAlertID   = 1200 // bytes: a kind and the longest key
	maxAlertBody = 16 << 10
)

// AlertsAnswer is what GET /v1/alerts answers.
type AlertsAnswer struct {
	Active   []alert.Alert   `json:"active"`   // those that fire, the newest first
	Past     []alert.Alert   `json:"past"`     // the last ones that did, the newest first
	Silences []alert.Silence `json:"silences"` // those that have not ended
}

// SilenceRequest is the body of POST /v1/alerts/silences.
type SilenceRequest struct {
	ID      string `json:"id"`    // of an alert, or a kind for all of it
	For     *int64 `json:"for_s"` // for how many seconds; 0 ends it
	Comment string `json:"comment,omitempty"`
}

// getAlerts answers GET /v1/alerts.
func (h *Handler) getAlerts(*call) (any, error) {
	list := h.options.Alerts
	answer := AlertsAnswer{
		Active: readableAlerts(list.Active()), Past: readableAlerts(list.Past()), Silences: []alert.Silence{},
	}
	for _, s := range list.Silences() {
		s.ID = readable(s.ID)
		answer.Silences = append(answer.Silences, s)
	}
	return answer, nil
}

// readableAlerts makes texts of keys that may be any bytes.
func readableAlerts(all []alert.Alert) []alert.Alert {
	for i := range all {
		a := &all[i]
		a.ID, a.Subject, a.Summary = readable(a.ID), readable(a.Subject), readable(a.Summary)
	}
	return append([]alert.Alert{}, all...)
}

// AlertTestAnswer is what POST /v1/alerts/test answers.
type AlertTestAnswer struct {
	Alert alert.Alert     `json:"alert"` // what was sent
	Sent  []AlertDelivery `json:"sent"`
}

// AlertDelivery is what became of an alert on its way.
type AlertDelivery struct {
	To    string `json:"to"`              // such as "webhook alerts.example.com"
	Error string `json:"error,omitempty"` // why it did not arrive
}

// testAlerts answers POST /v1/alerts/test.
func (h *Handler) testAlerts(c *call) (any, error) {
	if h.options.TestAlerts == nil {
		return nil, fault.NotEnabled.Of("This server does not send alerts.").Coded("no-receivers")
	}
	sent, all := h.options.TestAlerts(c.r.Context())
	if len(all) == 0 {
		return nil, fault.NotEnabled.Of("This server does not send alerts; start it with --alert-webhook or --alertmanager.").Coded("no-receivers")
	}
	answer := AlertTestAnswer{Alert: sent}
	for _, d := range all {
		one := AlertDelivery{To: d.To}
		if d.Err != nil {
			one.Error = readable(d.Err.Error())
		}
		answer.Sent = append(answer.Sent, one)
	}
	return answer, nil
}

// silence answers POST /v1/alerts/silences.
func (h *Handler) silence(c *call, want *SilenceRequest) (any, error) {
	list, now := h.options.Alerts, h.options.Clock().UTC().Truncate(time.Microsecond)
	s := alert.Silence{ID: meant(list, want.ID), Author: c.author(), Comment: want.Comment}
	if *want.For > 0 {
		s.Until, c.success = now.Add(time.Duration(*want.For)*time.Second), http.StatusCreated
	}
	// Who hangs up has said what is wanted; the archive's own time bounds the wait.
	err := list.Silence(context.WithoutCancel(c.r.Context()), s)
	if errors.Is(err, alert.ErrNotShared) {
		h.options.Logger.Warn("silence not shared with other instances", "alert", s.ID, "request_id", c.id[0], "error", err)
		return nil, fault.StoreUnavailable.Of("The silence applies on this instance, but not yet on the others, and another instance may still send the alert. The others apply it when the archive is available again; to be sure, try again soon.").After(fault.Outage).Coded("silence-not-shared")
	}
	if err != nil {
		return nil, fault.Field("id", "there are already %d silences, the maximum; end some, or silence a kind.", alert.MaxSilences).Coded("too-many", "max", alert.MaxSilences)
	}
	if s.ID = readable(s.ID); *want.For == 0 {
		s.Until = now
	}
	return s, nil
}

func (s *SilenceRequest) validate() error {
	kinds := alert.Kinds()
	kind, _, _ := strings.Cut(s.ID, ":")
	most := int64(MaxSilence / time.Second)
	switch {
	case s.ID == "":
		return fault.Field("id", `required; send the id of an alert, or a kind, such as "denied", to silence all alerts of it.`).Coded("required")
	case len(s.ID) > maxAlertID:
		return fault.Field("id", "%d bytes exceed the maximum of %d; send the id that GET /v1/alerts returns.", len(s.ID), maxAlertID).Coded("too-long", "bytes", len(s.ID), "max", maxAlertID)
	case !slices.Contains(kinds, kind):
		return fault.Field("id", "unknown kind of alert %q; send an id that GET /v1/alerts returns, or one of %s.", kind, strings.Join(kinds, ", "))
	case s.For == nil:
		return fault.Field("for_s", "required; send the duration in seconds, or 0 to end a silence.").Coded("required")
	case *s.For < 0 || *s.For > most:
		return fault.Field("for_s", "%d is out of range; send 1 to %d seconds, or 0 to end a silence.", *s.For, most).Coded("not-in-range", "value", *s.For, "min", 0, "max", most)
	case len(s.Comment) > maxComment:
		return fault.Field("comment", "%d bytes exceed the maximum of %d; shorten it.", len(s.Comment), maxComment).Coded("too-long", "bytes", len(s.Comment), "max", maxComment)
	}
	return nil
}

// meant is the id of the alert or silence that a client has read under this one, in which
// bytes that are no text were replaced.
func meant(list *alert.List, id string) string {
	for _, a := range list.Active() {
		if readable(a.ID) == id {
			return a.ID
		}
	}
	for _, s := range list.Silences() {
		if readable(s.ID) == id {
			return s.ID
		}
	}
	return id
}
