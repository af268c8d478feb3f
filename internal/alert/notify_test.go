package alert

import (
	"context"
	"crypto/hmac"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var some = []Alert{{ID: "denied", Kind: Denied, State: Firing, Value: 0.2, Threshold: 0.05, Summary: "too much", StartsAt: noon, UpdatedAt: noon}}

// The receiver gets the message that was sent. Its signature proves the sender, and is
// valid only for a short time.
func TestWebhook(t *testing.T) {
	secret := []byte("hush")
	var header http.Header
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header.Clone()
		body, _ = io.ReadAll(r.Body)
	}))
	defer server.Close()
	w, err := NewWebhook(server.URL+"/hook/token", secret)
	if err != nil {
		t.Fatal(err)
	}
	w.clock = func() time.Time { return noon }
	if err := w.Notify(t.Context(), some); err != nil {
		t.Fatal(err)
	}
	var m Message
	if err := json.Unmarshal(body, &m); err != nil || m.Version != 1 || len(m.Alerts) != 1 || m.Alerts[0] != some[0] {
		t.Errorf("%s: %v", body, err)
	}
	if err := verify(secret, header, body, noon.Add(time.Minute), 5*time.Minute); err != nil {
		t.Error(err)
	}
	forged := header.Clone()
	forged.Set(TimestampHeader, fmt.Sprint(noon.Add(time.Hour).Unix()))
	for name, err := range map[string]error{
		"another secret": verify([]byte("other"), header, body, noon, time.Minute),
		"another body":   verify(secret, header, append([]byte(" "), body...), noon, time.Minute),
		"too old":        verify(secret, header, body, noon.Add(time.Hour), time.Minute),
		"made younger":   verify(secret, forged, body, noon.Add(time.Hour), time.Minute),
		"from the past":  verify(secret, header, body, noon.Add(-time.Hour), time.Minute),
		"not signed":     verify(secret, http.Header{}, body, noon, time.Minute),
	} {
		if err == nil {
			t.Errorf("%s is taken for ours", name)
		}
	}
	if strings.Contains(w.Name(), "token") {
		t.Errorf("its name is %s", w.Name())
	}
}

// verify checks a message as a receiver does: it returns an error if the message was not signed
// with the secret, or is older than the tolerance.
func verify(secret []byte, header http.Header, body []byte, now time.Time, tolerance time.Duration) error {
	at := header.Get(TimestampHeader)
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return errors.New("alert: the message is not signed")
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > tolerance || age < -tolerance {
		return fmt.Errorf("alert: the message is %v old; compare the clocks", age)
	}
	if !hmac.Equal([]byte(header.Get(SignatureHeader)), []byte(sign(secret, at, body))) {
		return errors.New("alert: the signature is wrong; compare the secrets")
	}
	return nil
}

// What may succeed later is tried again, the rest is not; nothing of the URL is told.
func TestWebhookAnswers(t *testing.T) {
	status := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status == http.StatusFound {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(status)
		io.WriteString(w, strings.Repeat("no\n", 1000))
	}))
	w, err := NewWebhook(server.URL+"/secret", nil)
	if err != nil {
		t.Fatal(err)
	}
	for code, permanent := range map[int]bool{200: false, 204: false, 302: true, 400: true, 404: true, 408: false, 429: false, 500: false, 503: false} {
		status = code
		err := w.Notify(t.Context(), some)
		var p *PermanentError
		if (err == nil) != (code < 300) || errors.As(err, &p) != permanent {
			t.Errorf("%d: %v", code, err)
		}
		if err != nil && len(err.Error()) > 300 {
			t.Errorf("%d: %d bytes of error", code, len(err.Error()))
		}
	}
	server.Close()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if err := w.Notify(t.Context(), some); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("without a receiver: %v", err)
	}
	for _, bad := range []string{"", "ftp://x", "http://", "https://user:password@\x7f"} {
		if _, err := NewWebhook(bad, nil); err == nil || strings.Contains(err.Error(), "password") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// receiver is a notifier that fails as often as it is told to.
type receiver struct {
	mu    sync.Mutex
	fails int
	err   error
	got   [][]Alert
	tries []time.Time
}

func (r *receiver) Name() string { return "receiver" }

func (r *receiver) Notify(_ context.Context, alerts []Alert) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tries = append(r.tries, time.Now())
	if r.fails > 0 {
		r.fails--
		return r.err
	}
	r.got = append(r.got, alerts)
	return nil
}

// Messages are retried with growing pauses, but not forever. The queue of messages is
// bounded, and adding to it does not block.
func TestOutbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := &receiver{fails: 5, err: errors.New("away")}
		o := newOutbox(r.Name(), "alerts", slog.New(slog.DiscardHandler))
		notify := func(ctx context.Context) error { return r.Notify(ctx, some) }
		var running sync.WaitGroup
		running.Go(func() { o.run(ctx) })
		o.putMessage(notify)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if len(r.got) != 1 || len(r.tries) != 6 || o.dropped.Load() != 0 {
			t.Errorf("%d arrived after %d attempts", len(r.got), len(r.tries))
		}
		for i := 1; i < 6; i++ {
			most := firstPause << (i - 1)
			if pause := r.tries[i].Sub(r.tries[i-1]); pause > most || pause < most/2 {
				t.Errorf("pause %d is %v", i, pause)
			}
		}
		r.fails, r.tries = 1000, nil
		o.putMessage(notify)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if len(r.tries) != maxAttempts || o.dropped.Load() != 1 {
			t.Errorf("%d attempts, %d dropped", len(r.tries), o.dropped.Load())
		}
		r.tries, r.err = nil, &PermanentError{errors.New("never")}
		o.putMessage(notify)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(r.tries) != 1 || o.dropped.Load() != 2 {
			t.Errorf("%d attempts, %d dropped", len(r.tries), o.dropped.Load())
		}
		r.err = errors.New("away")
		synctest.Wait()
		for range maxQueue + 10 {
			o.putMessage(notify)
		}
		if n := o.dropped.Load(); n < 11 {
			t.Errorf("%d dropped", n)
		}
		cancel()
		running.Wait()
	})
}

func TestList(t *testing.T) {
	now := noon
	l := newList(func() time.Time { return now }, newMemory(t))
	resolved := some[0]
	resolved.State, resolved.EndsAt = Resolved, noon
	other := Alert{ID: "shadow:soon", Kind: Shadow, State: Firing, StartsAt: noon.Add(time.Second)}
	l.update([]Alert{some[0], other}, []Alert{some[0], other})
	if got := l.Active(); len(got) != 2 || got[0].ID != "shadow:soon" || got[0].Silenced {
		t.Errorf("%+v", got)
	}
	if err := l.Silence(t.Context(), Silence{ID: "shadow", Until: now.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if err := l.Silence(t.Context(), Silence{ID: "denied", Until: now.Add(time.Minute), Comment: "we know"}); err != nil {
		t.Fatal(err)
	}
	if got := l.audible([]Alert{some[0], other}); len(got) != 0 || !l.Active()[0].Silenced || len(l.Silences()) != 2 {
		t.Errorf("%+v", got)
	}
	now = now.Add(2 * time.Minute)
	if got := l.audible([]Alert{some[0], other}); len(got) != 1 || got[0].ID != "denied" || len(l.Silences()) != 1 {
		t.Errorf("%+v", got)
	}
	if err := l.Silence(t.Context(), Silence{ID: "shadow"}); err != nil || len(l.Silences()) != 0 {
		t.Errorf("%v, %+v", err, l.Silences())
	}
	for range MaxPast + 50 {
		l.update(nil, []Alert{resolved})
	}
	if len(l.Active()) != 0 || len(l.Past()) != MaxPast {
		t.Errorf("%d active, %d past", len(l.Active()), len(l.Past()))
	}
	for i := range MaxSilences {
		if err := l.Silence(t.Context(), Silence{ID: fmt.Sprint(i), Until: now.Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []Silence{{ID: "more", Until: now.Add(time.Hour)}, {Until: now.Add(time.Hour)}, {ID: "x", Comment: strings.Repeat("x", 1000)}} {
		if err := l.Silence(t.Context(), s); err == nil {
			t.Errorf("%.40v is accepted", s)
		}
	}
}
