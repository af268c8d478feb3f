package app

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/alert"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/queue"
)

// eventually waits for a condition.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s never happened", what)
		}
	}
}

// denied is how many denials the statistics of the last minute have.
func denied(t *testing.T, url string) int64 {
	t.Helper()
	status, body := ask(t, nil, "GET", url+"/v1/stats/summary", "")
	var answer struct {
		Denied int64
		Rules  []struct{ Denied int64 }
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s: %v", status, body, err)
	}
	if len(answer.Rules) > 0 && answer.Rules[0].Denied != answer.Denied {
		t.Fatalf("the rule and all requests differ: %s", body)
	}
	return answer.Denied
}

func denySome(t *testing.T, url string) {
	t.Helper()
	for range 5 { // of which two are allowed
		ask(t, nil, "POST", url+"/v1/check", `{"user": "alice"}`)
	}
}

// denyMany lets limits deny several clients.
func denyMany(t *testing.T, url string) {
	t.Helper()
	for i := range 4 {
		for range 3 { // of which two are allowed, the first time
			ask(t, nil, "POST", url+"/v1/check", fmt.Sprintf(`{"user": "user-%d"}`, i))
		}
	}
}

func urlOf(a *App) string { return "http://" + a.Addrs().HTTP.String() }

// What happened, what was counted and what is queued is there after a restart.
func TestDataSurvives(t *testing.T) {
	o, log := prepared(t, Options{Data: t.TempDir(), Queues: map[string]queue.Settings{"mail": {N: 1, Period: time.Hour}}}, perUser)
	a := started(t, o)
	denySome(t, urlOf(a))
	ask(t, nil, "POST", urlOf(a)+"/v1/counters/add", `{"add": [{"name": "visits", "by": 7}]}`)
	if status, body := ask(t, nil, "POST", urlOf(a)+"/v1/queues/mail/push", `{"payload": "hello"}`); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, body)
	}
	eventually(t, "a length in the metrics", func() bool {
		_, body := ask(t, nil, "GET", urlOf(a)+"/metrics", "")
		return strings.Contains(body, `weir_queue_items{queue="mail",state="ready"}`) && strings.Contains(body, "weir_stats_lost_total 0")
	})
	if err := a.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"keys", "stats", "counters", "queues"} {
		if _, err := os.Stat(filepath.Join(o.Data, file+".snapshot")); err != nil {
			t.Error(err)
		}
	}
	b := started(t, o)
	eventually(t, "the second in which three were denied", func() bool { return denied(t, urlOf(b)) == 3 })
	if _, body := ask(t, nil, "GET", urlOf(b)+"/v1/counters?name=visits", ""); !strings.Contains(body, `"value":7`) {
		t.Errorf("the counter is %s", body)
	}
	if _, body := ask(t, nil, "POST", urlOf(b)+"/v1/queues/mail/lease", `{}`); !strings.Contains(body, "hello") {
		t.Errorf("the work is %s", body)
	}
	if !strings.Contains(log.String(), `msg="restored data" what=statistics`) {
		t.Errorf("the log says\n%s", log)
	}
}

// Counters have a capacity and a retention. A file that has more than the capacity is restored
// whole, and the metrics and the log say that it is full.
func TestCounterCapacity(t *testing.T) {
	o, log := prepared(t, Options{Data: t.TempDir(), CounterCapacity: 3, CounterKeep: counter.Retention{Days: 2}}, perUser)
	a := started(t, o)
	ask(t, nil, "POST", urlOf(a)+"/v1/counters/add", `{"add": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}`)
	if status, body := ask(t, nil, "GET", urlOf(a)+"/v1/counters/history?name=a&window=day&n=3", ""); status != http.StatusBadRequest || !strings.Contains(body, "only 2 windows") {
		t.Errorf("%d %s", status, body)
	}
	if err := a.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	o.CounterCapacity = 2
	a = started(t, o)
	if status, body := ask(t, nil, "POST", urlOf(a)+"/v1/counters/add", `{"add": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}`); status != http.StatusOK || strings.Count(body, `"value":2`) != 3 {
		t.Errorf("%d %s", status, body)
	}
	if status, body := ask(t, nil, "POST", urlOf(a)+"/v1/counters/add", `{"add": [{"name": "d"}]}`); status != http.StatusInsufficientStorage {
		t.Errorf("%d %s", status, body)
	}
	_, metrics := ask(t, nil, "GET", urlOf(a)+"/metrics", "")
	for _, want := range []string{"weir_counter_entries 3", "weir_counter_capacity 2", "weir_counter_rejected_total 1"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	for _, want := range []string{"more counters restored than --counter-capacity", "counters full"} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("the log says %q not once:\n%s", want, log)
		}
	}
}

// In Redis, the retention is the same.
func TestCounterRetentionInRedis(t *testing.T) {
	o, _ := prepared(t, Options{Store: "redis://" + testredis.Start(t).Addr + "?timeout=5s", CounterKeep: counter.Retention{Days: 2}}, perUser)
	a := started(t, o)
	if status, body := ask(t, nil, "GET", urlOf(a)+"/v1/counters/history?name=a&window=day&n=3", ""); status != http.StatusBadRequest || !strings.Contains(body, "only 2 windows") {
		t.Errorf("%d %s", status, body)
	}
}

// weir starts even if a file is damaged.
func TestDamagedData(t *testing.T) {
	o, log := prepared(t, Options{Data: t.TempDir(), Queues: map[string]queue.Settings{"mail": {N: 1, Period: time.Hour}}}, perUser)
	for _, file := range []string{"keys", "stats", "counters", "queues"} {
		if err := os.WriteFile(filepath.Join(o.Data, file+".snapshot"), []byte("no snapshot"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := started(t, o)
	denySome(t, urlOf(a))
	if n := strings.Count(log.String(), "could not restore data; it restarts from zero"); n != 4 {
		t.Errorf("%d warnings, want 4:\n%s", n, log)
	}
}

// Two servers on one Redis add up, also when Redis was not there when they started.
func TestStatsOfSeveral(t *testing.T) {
	server := testredis.Start(t)
	server.Kill()
	queues := map[string]queue.Settings{"mail": {N: 1, Period: time.Hour}}
	var all []*App
	for range 2 {
		o, _ := prepared(t, Options{Store: "redis://" + server.Addr + "?timeout=5s", Queues: queues}, perUser)
		all = append(all, started(t, o))
	}
	if status, body := ask(t, nil, "POST", urlOf(all[0])+"/v1/counters/add", `{"add": [{"name": "visits"}]}`); status != http.StatusServiceUnavailable {
		t.Errorf("without Redis: %d %s", status, body)
	}
	server.Restart()
	eventually(t, "counting", func() bool {
		status, _ := ask(t, nil, "POST", urlOf(all[0])+"/v1/counters/add", `{"add": [{"name": "visits"}]}`)
		return status == http.StatusOK
	})
	eventually(t, "the same at the other server", func() bool {
		_, body := ask(t, nil, "GET", urlOf(all[1])+"/v1/counters?name=visits", "")
		return strings.Contains(body, `"value":1`)
	})
	if status, body := ask(t, nil, "POST", urlOf(all[0])+"/v1/queues/mail/push", `{"payload": "hello"}`); status != http.StatusAccepted {
		t.Errorf("%d %s", status, body)
	}
	if _, body := ask(t, nil, "POST", urlOf(all[1])+"/v1/queues/mail/lease", `{}`); !strings.Contains(body, "hello") {
		t.Errorf("the work is %s", body)
	}
	eventually(t, "the store's return", func() bool { return all[0].store.up() && all[1].store.up() })
	before := denied(t, urlOf(all[0]))
	denySome(t, urlOf(all[0]))
	denySome(t, urlOf(all[1]))
	for _, a := range all {
		eventually(t, "the sum", func() bool { return denied(t, urlOf(a)) >= before+8 })
	}
}

// The stream has the seconds in which requests were denied, and ends when weir does.
func TestStreamEnds(t *testing.T) {
	o, _ := prepared(t, Options{}, perUser)
	a := started(t, o)
	resp, err := http.Get(urlOf(a) + "/v1/stats/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	denySome(t, urlOf(a))
	lines := bufio.NewScanner(resp.Body)
	denied := int64(0) // it is unknown in how many seconds
	for denied < 3 && lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data:"); ok {
			var second struct{ Denied int64 }
			if err := json.Unmarshal([]byte(data), &second); err != nil {
				t.Fatalf("%s: %v", data, err)
			}
			denied += second.Denied
		}
	}
	if denied != 3 {
		t.Fatalf("the seconds have %d denials: %v", denied, lines.Err())
	}
	if err := a.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Logf("the end is %v", err)
	}
	http.DefaultClient.CloseIdleConnections()
}

// What the gateway passes on is in the statistics.
func TestUpstreamIsCounted(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/bad" {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	defer upstream.Close()
	o, _ := prepared(t, Options{Gateway: &Gateway{Listen: "127.0.0.1:0"}}, "rules: []\n")
	o.Gateway.Routes = routes(t, upstream.URL)
	a := started(t, o)
	front := "http://" + a.Addrs().Gateway.String()
	for _, path := range []string{"/", "/", "/", "/bad"} {
		ask(t, nil, "GET", front+path, "")
	}
	eventually(t, "four requests with an error", func() bool {
		_, body := ask(t, nil, "GET", urlOf(a)+"/v1/stats/summary", "")
		return strings.Contains(body, `"upstream":{"requests":4,"errors":1,"error_share":0.25`)
	})
}

// Alerts are listed, and posted to a webhook with a signature.
func TestAlertIsPosted(t *testing.T) {
	const secret = "a-secret-of-some-length"
	type message struct {
		header http.Header
		body   []byte
	}
	posted := make(chan message, 100)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		posted <- message{r.Header, body}
	}))
	defer hook.Close()
	checks, err := alert.Parse("denied=5%,window=10s,minimum=1,hold=10s")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o, _ := prepared(t, Options{Alerts: Alerts{Checks: checks, Webhook: hook.URL, WebhookSecretFile: file, Link: "https://weir.example.com/"}}, perUser)
	a := started(t, o)
	var m message
	for posting := true; posting; {
		denyMany(t, urlOf(a))
		select {
		case m = <-posted:
			posting = false
		case <-time.After(50 * time.Millisecond): // so that every ten seconds have some
		}
	}
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%s.%s", m.header.Get(alert.TimestampHeader), m.body)
	if got, want := m.header.Get(alert.SignatureHeader), "sha256="+hex.EncodeToString(mac.Sum(nil)); got != want {
		t.Errorf("the signature is %s, want %s", got, want)
	}
	var got alert.Message
	if err := json.Unmarshal(m.body, &got); err != nil || len(got.Alerts) != 1 {
		t.Fatalf("%v: the message is %s", err, m.body)
	}
	if one := got.Alerts[0]; one.Kind != alert.Denied || one.Rule != "api" || !strings.Contains(one.Instance, "127.0.0.1") || !strings.HasPrefix(one.URL, "https://weir.example.com/#/rules/view/api?from=") || !strings.HasSuffix(one.Summary, "most denials are by the rule api (reported by "+one.Instance+").") {
		t.Errorf("the message is %s", m.body)
	}
	if _, body := ask(t, nil, "GET", urlOf(a)+"/v1/alerts", ""); !strings.Contains(body, `"id":"denied"`) {
		t.Errorf("the list is %s", body)
	}
}

// An alert is sent to see whether it arrives.
func TestAlertIsTested(t *testing.T) {
	posted := make(chan string, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		posted <- string(body)
	}))
	defer hook.Close()
	o, _ := prepared(t, Options{Alerts: Alerts{Webhook: hook.URL, Alertmanager: "http://127.0.0.1:1"}}, perUser)
	status, body := ask(t, nil, "POST", urlOf(started(t, o))+"/v1/alerts/test", "")
	if status != http.StatusOK || !strings.Contains(body, `{"to":"webhook `) || !strings.Contains(body, `{"to":"alertmanager 127.0.0.1:1","error":"alert: `) {
		t.Errorf("%d %s", status, body)
	}
	if got := <-posted; !strings.Contains(got, `"kind":"test"`) || !strings.Contains(got, `"instance":"`) {
		t.Errorf("posted %s", got)
	}
}

func TestDashboardLink(t *testing.T) {
	for _, c := range []struct {
		http, link string
		tls        bool
		want       string
	}{
		{"127.0.0.1:8080", "", false, "http://127.0.0.1:8080/"},
		{":8080", "", true, "https://here:8080/"},
		{"[::]:8080", "", false, "http://here:8080/"},
		{"weir.internal:80", "", false, "http://weir.internal:80/"},
		{"127.0.0.1:0", "", false, ""},
		{"127.0.0.1:8080", "https://weir.example.com/ops/", true, "https://weir.example.com/ops/"},
		{"127.0.0.1:8080", "weir.example.com", false, "--alert-link"},
	} {
		o := Options{HTTP: c.http, Alerts: Alerts{Link: c.link}}
		if c.tls {
			o.TLS.CertFile = "cert.pem"
		}
		got, err := o.dashboard("here")
		if err != nil {
			got = err.Error()[:len("--alert-link")]
		}
		if got != c.want {
			t.Errorf("%+v: got %q", c, got)
		}
	}
}

// Every alert leads to the page that shows it, in its time.
func TestAlertLink(t *testing.T) {
	noon := time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		alert alert.Alert
		want  string
	}{
		{alert.Alert{Kind: alert.Denied, Rule: "api"}, "http://weir/#/rules/view/api?from=1799999400&to=1800000060"},
		{alert.Alert{Kind: alert.Denied}, "http://weir/#/overview?from=1799999400&to=1800000060"},
		{alert.Alert{Kind: alert.Shadow, Subject: "a/b", Rule: "a/b"}, "http://weir/#/rules/view/a%2Fb?from=1799999400&to=1800000060"},
		{alert.Alert{Kind: alert.HotKey, Subject: "user:a&b", Rule: "api"}, "http://weir/#/clients?from=1799999400&key=user%3Aa%26b&rule=api&to=1800000060"},
		{alert.Alert{Kind: alert.Drop, EndsAt: noon.Add(time.Hour)}, "http://weir/#/overview?from=1799999400&to=1800003600"},
		{alert.Alert{Kind: alert.Test}, "http://weir/#/alerts"},
	} {
		c.alert.StartsAt, c.alert.UpdatedAt = noon, noon.Add(time.Minute)
		if got := alertLink("http://weir/", c.alert); got != c.want {
			t.Errorf("%+v: %s", c.alert, got)
		}
	}
	if got := alertLink("", alert.Alert{Kind: alert.Drop}); got != "" {
		t.Errorf("without a dashboard: %s", got)
	}
}

func TestStatsOff(t *testing.T) {
	o, _ := prepared(t, Options{Stats: Stats{Off: true}}, perUser)
	a := started(t, o)
	denySome(t, urlOf(a))
	for _, path := range []string{"/v1/stats/summary", "/v1/alerts"} {
		if status, body := ask(t, nil, "GET", urlOf(a)+path, ""); status != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

func TestAlertsThatCannotBeSent(t *testing.T) {
	short := filepath.Join(t.TempDir(), "short")
	if err := os.WriteFile(short, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, alerts := range map[string]Alerts{
		"--alert-webhook:":                   {Webhook: "ftp://example.com"},
		"--alertmanager:":                    {Alertmanager: "nowhere"},
		"requires --alert-webhook":           {WebhookSecretFile: short},
		"has fewer than 16 characters":       {Webhook: "http://127.0.0.1:1", WebhookSecretFile: short},
		"--alert-webhook-secret-file: open ": {Webhook: "http://127.0.0.1:1", WebhookSecretFile: short + "er"},
	} {
		o, _ := prepared(t, Options{Alerts: alerts}, perUser)
		a, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Start(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
			if err == nil {
				a.Stop(context.Background())
			}
		}
	}
}
