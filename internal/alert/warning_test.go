package alert

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/stats/archive"
)

// A webhook gets warnings in the order in which they happened, signed like alerts.
func TestWarningWebhook(t *testing.T) {
	var header http.Header
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		header = r.Header.Clone()
		body, _ = io.ReadAll(r.Body)
	}))
	defer server.Close()
	hook, err := NewWebhook(server.URL, []byte("hush"))
	if err != nil {
		t.Fatal(err)
	}
	hook.clock = func() time.Time { return noon }
	w := watcherOf(t, hook)
	at := archive.Instant(noon.UnixMicro())
	w.warn(archive.Warned{N: 5, List: []archive.Warning{
		{At: at + 2, Rule: "plan", Key: "user:bob", Policy: "10/1h", Threshold: 95, Used: 10, Limit: 10, ResetAt: at + 3e6},
		{At: at + 1, Rule: "plan", Key: "user:alice", Policy: "10/1h", Threshold: 80, Used: 8, Limit: 10, ResetAt: at + 3e6},
	}})
	send := w.recipients[0].warnings.takeMessage()
	if send == nil {
		t.Fatal("nothing is sent")
	}
	if err := send(t.Context()); err != nil {
		t.Fatal(err)
	}
	const want = `{"version":1,"alerts":[],"warnings":[` +
		`{"at":"2026-03-14T12:00:00.000001Z","rule":"plan","key":"user:alice","policy":"10/1h","threshold":80,"used":8,"limit":10,"reset_at":"2026-03-14T12:00:03Z","instance":"here"},` +
		`{"at":"2026-03-14T12:00:00.000002Z","rule":"plan","key":"user:bob","policy":"10/1h","threshold":95,"used":10,"limit":10,"reset_at":"2026-03-14T12:00:03Z","instance":"here"}],"more":3}`
	if string(body) != want {
		t.Errorf("got\n%s\nwant\n%s", body, want)
	}
	if err := verify([]byte("hush"), header, body, noon, time.Minute); err != nil {
		t.Error(err)
	}
	var m Message
	if err := json.Unmarshal(body, &m); err != nil || m.Alerts == nil {
		t.Errorf("%+v, %v", m, err)
	}
}

// However many warnings there are, a bounded number of messages waits, and alerts are not
// displaced. Notifiers that cannot send warnings get none.
func TestManyWarnings(t *testing.T) {
	hook, err := NewWebhook("http://127.0.0.1:1", nil)
	if err != nil {
		t.Fatal(err)
	}
	manager, err := NewAlertmanager("http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	w := watcherOf(t, hook, manager)
	w.tell(some, w.recipients...)
	w.tell(nil, w.recipients...) // is no message
	for range 1000 {
		w.warn(archive.Warned{N: 1 << 20, List: make([]archive.Warning, archive.MaxWarnings)})
	}
	toHook, toManager := w.recipients[0].warnings.waiting, w.recipients[1].warnings.waiting
	if dropped := w.recipients[0].warnings.dropped.Load(); len(toHook) != maxQueue || len(toManager) != 0 || dropped != 1000-maxQueue {
		t.Errorf("%d wait for the webhook and %d for Alertmanager, %d were dropped", len(toHook), len(toManager), dropped)
	}
	for i, r := range w.recipients {
		if len(r.alerts.waiting) != 1 {
			t.Errorf("notifier %d: %d alerts wait", i, len(r.alerts.waiting))
		}
	}
}

func watcherOf(t *testing.T, notifiers ...Notifier) *Watcher {
	t.Helper()
	var a archive.Store
	a, err := archive.NewMemory(archive.Keep{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := stats.New(stats.Options{Archive: a})
	if err != nil {
		t.Fatal(err)
	}
	w, err := New(Options{Source: r, Notifiers: notifiers, Instance: "here", Clock: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	return w
}
