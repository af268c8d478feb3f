package httpapi

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/stats/alert"
)

var alertRoutes = []route{
	{"GET", "/v1/alerts", reading, watching(withoutQuery((*Handler).getAlerts))},
	{"POST", "/v1/alerts/silences", changing, watching(taking(maxAlertBody, (*Handler).silence))},
	{"POST", "/v1/alerts/test", changing, watching(withoutQuery((*Handler).testAlerts))},
}

// watching makes a handler of one that needs the list of alerts.
func watching(serve handler) handler {
	return func(h *Handler, c *call) (any, error) {
		if h.options.Alerts == nil {
			return nil, notKept.of("This server watches for nothing; ask one that keeps statistics.")
		}
		return serve(h, c)
	}
}

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
		return nil, notKept.of("This server tells nobody of alerts.")
	}
	sent, all := h.options.TestAlerts(c.r.Context())
	if len(all) == 0 {
		return nil, notKept.of("This server tells nobody of alerts; start it with --alert-webhook or --alertmanager.")
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
		h.options.Logger.Warn("a silence could not be shared", "alert", s.ID, "request_id", c.id, "error", err)
		return nil, storeGone.of("This instance does what you ask; the others cannot be told just now, and one of them may be the one that sends alerts. They are told once the archive is back; to be sure, try again soon.").after(outage)
	}
	if err != nil {
		return nil, badField.of("id: there are %d silences, and no room for more; end some, or silence a kind.", alert.MaxSilences).in("id")
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
		return badField.of(`id: it is missing; send that of an alert, or a kind, such as "denied", for all of it.`).in("id")
	case len(s.ID) > maxAlertID:
		return badField.of("id: it has %d bytes, at most %d are taken; send it as GET /v1/alerts names it.", len(s.ID), maxAlertID).in("id")
	case !slices.Contains(kinds, kind):
		return badField.of("id: there are no alerts %q; send an id that GET /v1/alerts names, or one of %s.", kind, strings.Join(kinds, ", ")).in("id")
	case s.For == nil:
		return badField.of("for_s: it is missing; send for how many seconds, or 0 to end a silence.").in("for_s")
	case *s.For < 0 || *s.For > most:
		return badField.of("for_s: %d is out of range; send 1 to %d seconds, or 0 to end a silence.", *s.For, most).in("for_s")
	case len(s.Comment) > maxComment:
		return badField.of("comment: it has %d bytes, at most %d are kept; say it in fewer words.", len(s.Comment), maxComment).in("comment")
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
