package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/alert"
	"github.com/weirhq/weir/internal/archiveredis"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/redislink"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/stats/archive"
)

// alarmed is a server on which an alert fires, another is over, and one is silenced.
func alarmed(t *testing.T, o *Options) {
	s := newStatsStand(t, Options{})
	s.alarm()
	o.Alerts = s.watcher.List()
	if err := o.Alerts.Silence(t.Context(), alert.Silence{ID: "denied", Until: begin.Add(time.Hour), Author: "alice", Comment: "known"}); err != nil {
		t.Fatal(err)
	}
}

// alarm lets limits deny most for two minutes, then nothing for three, then again. The
// watcher sees all of it at once, as after a restart.
func (s *statsStand) alarm() {
	s.t.Helper()
	for minute := range 8 {
		for range 6 {
			if minute < 2 || minute > 5 {
				for client := range 4 {
					s.check(fmt.Sprintf(`{"path":"/api/login","method":"POST","ip":"192.0.2.%d","cost":3}`, client), 5, 0)
				}
			} else {
				s.check(`{"path":"/elsewhere"}`, 20, 20)
			}
			s.pass(10)
		}
	}
	over, cancel := context.WithCancel(s.t.Context())
	cancel()
	if err := s.watcher.Run(over); err != nil {
		s.t.Fatal(err)
	}
}

// An alert is sent to see whether it arrives, and the answer says what became of it.
func TestTestAlerts(t *testing.T) {
	o := Options{Service: manage.Service{Tokens: tokens(t)}}
	withStats(t, &o)
	s := newStand(t, o)
	s.call("POST /v1/alerts/test", "", as(readerToken)).wantProblem(t, fault.Forbidden)
	var told []alert.Delivery
	s.options.TestAlerts = func(context.Context) (alert.Alert, []alert.Delivery) {
		return alert.Alert{ID: "test", Kind: alert.Test, State: alert.Firing}, told
	}
	s.call("POST /v1/alerts/test", "", as(adminToken)).wantProblem(t, fault.NotEnabled, "--alert-webhook or --alertmanager")
	told = []alert.Delivery{{To: "webhook a.example.com"}, {To: "alertmanager b.example.com", Err: errors.New("alert: the answer is 404\xff")}}
	var a AlertTestAnswer
	s.call("POST /v1/alerts/test", "", as(adminToken)).want(t, 200, &a)
	if got := fmt.Sprint(a.Alert.Kind, a.Sent); got != "test[{webhook a.example.com } {alertmanager b.example.com alert: the answer is 404\uFFFD}]" {
		t.Errorf("%s", got)
	}
	s.options.TestAlerts = nil
	s.call("POST /v1/alerts/test", "", as(adminToken)).wantProblem(t, fault.NotEnabled)
}

func TestAlerts(t *testing.T) {
	s := newStatsStand(t, Options{Service: manage.Service{Tokens: tokens(t)}})
	r := s.call("GET /v1/alerts", "", as(readerToken)).want(t, 200, nil)
	if string(r.body) != `{"active":[],"past":[],"silences":[]}`+"\n" {
		t.Errorf("without alerts: %s", r.body)
	}
	s.alarm()
	var a AlertsAnswer
	read := func() {
		t.Helper()
		a = AlertsAnswer{}
		r = s.call("GET /v1/alerts", "", as(readerToken)).want(t, 200, &a)
	}
	if read(); len(a.Active) != 1 || a.Active[0].ID != "denied" || a.Active[0].State != alert.Firing || a.Active[0].Value <= 0.5 || a.Active[0].Silenced {
		t.Errorf("active: %s", r.body)
	}
	if len(a.Past) != 1 || a.Past[0].State != alert.Resolved || !a.Past[0].EndsAt.After(a.Past[0].StartsAt) || len(a.Silences) != 0 {
		t.Errorf("past: %s", r.body)
	}

	var silence alert.Silence
	s.call("POST /v1/alerts/silences", `{"id":"denied","for_s":3600,"comment":"a known <crawler>"}`, as(adminToken)).want(t, 201, &silence)
	until := time.UnixMicro(s.now.Load()).Add(time.Hour).UTC()
	if want := (alert.Silence{ID: "denied", Until: until, Author: "alice", Comment: "a known <crawler>"}); silence != want {
		t.Errorf("%+v, want %+v", silence, want)
	}
	if read(); !a.Active[0].Silenced || !slices.Equal(a.Silences, []alert.Silence{silence}) {
		t.Errorf("silenced: %s", r.body)
	}
	s.call("POST /v1/alerts/silences", `{"id":"denied","for_s":0}`, as(adminToken)).want(t, 200, &silence)
	if !silence.Until.Equal(until.Add(-time.Hour)) {
		t.Errorf("it ends at %v", silence.Until)
	}
	if read(); a.Active[0].Silenced || len(a.Silences) != 0 {
		t.Errorf("not any more: %s", r.body)
	}
	s.call("POST /v1/alerts/silences", `{"id":"denied","for_s":1}`, as(adminToken)).want(t, 201, nil)
	s.pass(1)
	if read(); len(a.Silences) != 0 {
		t.Errorf("after a second: %s", r.body)
	}
	s.call("POST /v1/alerts/silences", `{"id":"denied","for_s":0}`, as(readerToken)).wantProblem(t, fault.Forbidden)
}

func TestSilenceProblems(t *testing.T) {
	s := newStatsStand(t, Options{})
	for _, c := range []struct{ body, field, words string }{
		{`{"for_s":1}`, "id", "required"},
		{`{"id":"","for_s":1}`, "id", "required"},
		{`{"id":"throtled","for_s":1}`, "id", "one of denied, denied_requests, drop"},
		{`{"id":"<b>:x","for_s":1}`, "id", "unknown kind"},
		{`{"id":"hot_key:` + strings.Repeat("x", 1200) + `","for_s":1}`, "id", "1208 bytes"},
		{`{"id":"drop"}`, "for_s", "required"},
		{`{"id":"drop","for_s":null}`, "for_s", "required"},
		{`{"id":"drop","for_s":-1}`, "for_s", "out of range"},
		{`{"id":"drop","for_s":2592001}`, "for_s", "1 to 2592000"},
		{`{"id":"drop","for_s":9223372036854775807}`, "for_s", "out of range"},
		{`{"id":"drop","for_s":1.5}`, "for_s", "a whole number"},
		{`{"id":"drop","for_s":"1"}`, "for_s", "a whole number"},
		{`{"id":"drop","for_s":1,"comment":"` + strings.Repeat("é", 251) + `"}`, "comment", "502 bytes"},
		{`{"id":"drop","for_":1}`, "for_", "did you mean for_s?"},
	} {
		if p := s.call("POST /v1/alerts/silences", c.body).wantProblem(t, fault.BadField, c.words); p.Field != c.field {
			t.Errorf("%s: %q in %q", c.body, p.Detail, p.Field)
		}
	}
	s.call("POST /v1/alerts/silences", "").wantProblem(t, fault.BadBody)
	s.call("POST /v1/alerts/silences?x=1", `{"id":"drop","for_s":1}`).wantProblem(t, fault.BadField)
	s.call("POST /v1/alerts/silences", `{"id":"drop","for_s":2592000,"comment":"`+strings.Repeat("é", 250)+`"}`).want(t, 201, nil)
	// However many are wanted, a few are kept; those that are there can be changed.
	for i := range alert.MaxSilences - 1 {
		s.call("POST /v1/alerts/silences", fmt.Sprintf(`{"id":"hot_key:user:%d","for_s":60}`, i)).want(t, 201, nil)
	}
	s.call("POST /v1/alerts/silences", `{"id":"slow","for_s":60}`).wantProblem(t, fault.BadField, "the maximum")
	s.call("POST /v1/alerts/silences", `{"id":"drop","for_s":0}`).want(t, 200, nil)
	s.call("POST /v1/alerts/silences", `{"id":"slow","for_s":60}`).want(t, 201, nil)
}

// A key that is no text has an alert all the same, and it can be silenced by the id that
// was read.
func TestAlertOfAnyBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder, _, _ := newRecorder(t, stats.Options{Clock: time.Now})
		watcher, err := alert.New(alert.Options{Source: recorder, Checks: []alert.Check{{Kind: alert.HotKey, Minimum: 1, Hold: 10 * time.Second}}, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		s := newStand(t, Options{Stats: recorder, Alerts: watcher.List(), Clock: time.Now})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go recorder.Run(ctx)
		go watcher.Run(ctx)
		synctest.Wait()
		for range 60 {
			var v engine.Verdict
			if err := s.engine.Check(t.Context(), &rule.Request{User: "m\xff\u202e", Path: "/api/x", Cost: 101, IP: netip.MustParseAddr("192.0.2.7")}, &v); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		var a AlertsAnswer
		s.call("GET /v1/alerts", "").want(t, 200, &a)
		if len(a.Active) != 1 || a.Active[0].ID != "hot_key:user:m\uFFFD\u202e" || a.Active[0].Silenced {
			t.Fatalf("%+v", a)
		}
		body := dump(t, map[string]any{"id": a.Active[0].ID, "for_s": 60})
		r := s.call("POST /v1/alerts/silences", body).want(t, 201, nil)
		if !bytes.Contains(r.body, []byte("\uFFFD")) && !bytes.Contains(r.body, []byte(`\ufffd`)) {
			t.Errorf("%s", r.body)
		}
		if s.call("GET /v1/alerts", "").want(t, 200, &a); !a.Active[0].Silenced || len(a.Silences) != 1 || a.Silences[0].ID != a.Active[0].ID {
			t.Errorf("%+v", a)
		}
		s.call("POST /v1/alerts/silences", strings.Replace(body, "60", "0", 1)).want(t, 200, nil)
		a = AlertsAnswer{}
		if s.call("GET /v1/alerts", "").want(t, 200, &a); a.Active[0].Silenced || len(a.Silences) != 0 {
			t.Errorf("%+v", a)
		}
	})
}

// SetNote is lost with the rest.
func (l *losableArchive) SetNote(ctx context.Context, kind string, n archive.Note, now time.Time) error {
	if l.lost.Load() {
		return errArchive
	}
	return l.Memory.SetNote(ctx, kind, n, now)
}

// While Redis is unavailable, the answer to a silence, or to its end, tells that it
// applies to one instance only, without naming the Redis server.
func TestSilenceIsNotShared(t *testing.T) {
	redis := testredis.Start(t)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{redis.Addr}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	kept, err := archiveredis.Open(redislink.Given(client), archiveredis.Options{})
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	recorder, err := stats.New(stats.Options{Archive: kept, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := alert.New(alert.Options{Source: recorder, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	s := newStand(t, Options{Stats: recorder, Alerts: watcher.List(), Clock: time.Now})
	silent := func() string {
		var a AlertsAnswer
		s.call("GET /v1/alerts", "").want(t, 200, &a)
		var ids []string
		for _, silence := range a.Silences {
			ids = append(ids, silence.ID)
		}
		return strings.Join(ids, " ")
	}
	var made alert.Silence
	s.call("POST /v1/alerts/silences", `{"id":"drop","for_s":60}`).want(t, 201, &made)
	if all := watcher.List().Silences(); len(all) != 1 || !all[0].Until.Equal(made.Until) {
		t.Errorf("%v was answered, and is %v", made, all)
	}
	redis.Kill()
	for _, body := range []string{`{"id":"denied","for_s":60}`, `{"id":"drop","for_s":0}`} {
		r := s.call("POST /v1/alerts/silences", body)
		r.wantProblem(t, fault.StoreUnavailable, "not yet on the others")
		if r.Header.Get("Retry-After") != "5" || strings.Contains(string(r.body), redis.Addr) {
			t.Errorf("%v: %s", r.Header, r.body)
		}
	}
	if got := silent(); got != "denied" {
		t.Errorf("%q are silent", got)
	}
	redis.Restart()
	for deadline := time.Now().Add(2 * time.Minute); ; {
		r := s.call("POST /v1/alerts/silences", `{"id":"denied","for_s":60}`)
		if r.StatusCode == 201 {
			break
		}
		if r.wantProblem(t, fault.StoreUnavailable); time.Now().After(deadline) {
			t.Fatal("Redis is available again, but it is not used")
		}
	}
	if got := silent(); got != "denied" {
		t.Errorf("%q are silent", got)
	}
}
