package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/trust"
	"github.com/weirhq/weir/stats"
)

// following is a stream that is being read, without a network.
type following struct {
	header http.Header
	status int
	body   *io.PipeWriter
	events chan string
	ended  chan struct{}
	leave  context.CancelFunc
}

func (f *following) Header() http.Header                { return f.header }
func (f *following) WriteHeader(status int)             { f.status = status }
func (f *following) Write(text []byte) (int, error)     { return f.body.Write(text) }
func (f *following) FlushError() error                  { return nil }
func (f *following) SetReadDeadline(time.Time) error    { return nil }
func (f *following) SetWriteDeadline(_ time.Time) error { return nil }

// follow opens a stream.
func follow(t *testing.T, h http.Handler, headers ...string) *following {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	out, in := io.Pipe()
	f := &following{header: http.Header{}, body: in, events: make(chan string, 100), ended: make(chan struct{}), leave: leave}
	r := httptest.NewRequestWithContext(ctx, "GET", "/v1/stats/stream", nil)
	r.Host, r.RemoteAddr = "127.0.0.1:8080", "127.0.0.1:50000"
	setHeaders(r, headers)
	go func() {
		defer close(f.ended)
		h.ServeHTTP(f, r)
		in.Close()
	}()
	go func() {
		defer close(f.events)
		readEvents(out, func(data string) { f.events <- data })
	}()
	return f
}

// readEvents reads what follows "data: " until the end.
func readEvents(from io.Reader, tell func(data string)) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			tell(data)
		}
	}
}

// next is the next event.
func (f *following) next(t *testing.T) (a SummaryAnswer) {
	t.Helper()
	data, ok := <-f.events
	if !ok {
		t.Fatal("the stream has ended")
	}
	if err := json.Unmarshal([]byte(data), &a); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return a
}

// runs lets a recorder run until the test is over. It returns how to end it earlier.
func runs(t testing.TB, recorder *stats.Recorder) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := recorder.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	end = func() {
		cancel()
		<-done
	}
	t.Cleanup(end)
	return end
}

func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder, _, kept := newRecorder(t, stats.Options{Clock: time.Now})
		s := newStand(t, Options{Stats: recorder, Clock: time.Now})
		end := runs(t, recorder)
		time.Sleep(50 * time.Millisecond) // away from where a second ends, and the next begins
		for range 10 {
			s.call("POST /v1/check", aliceAsks).want(t, 200, nil)
			recorder.ObserveUpstream("shop", 200, time.Millisecond, nil)
			time.Sleep(time.Second)
		}
		time.Sleep(500 * time.Millisecond)
		opened := time.Now()
		f := follow(t, s)
		a := f.next(t)
		if !time.Now().Equal(opened) || a.From != opened.Unix()-5 || a.Requests != 1 || a.Window != 1 {
			t.Errorf("after %v: %+v", time.Since(opened), a)
		}
		if f.status != 200 || f.header.Get("Content-Type") != "text/event-stream" || f.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%d %v", f.status, f.header)
		}
		for i := range 3 {
			for range 4 {
				s.call("POST /v1/check", bobLogsIn).want(t, 200, nil)
			}
			s.call("POST /v1/check", `{"path":"/safe"}`).want(t, 200, nil)
			a := f.next(t)
			if i == 0 {
				continue // its second had begun before
			}
			if since := time.Since(opened); since < time.Duration(i)*time.Second || since > time.Duration(i+1)*time.Second {
				t.Errorf("event %d comes after %v", i, since)
			}
			if a.From != opened.Unix()+int64(i) || a.To != a.From+1 || a.Window != 1 || a.Requests != 5 || a.Rate != 5 || a.Local || a.Latency.Mean != 20*time.Microsecond {
				t.Errorf("event %d is %+v", i, a)
			}
			if len(a.Rules) != 3 || a.Rules[2].Rule != "safe" || a.Rules[2].Requests != 1 || a.Rules[0].Rule != "api" || a.Rules[1].Rule != "login" || a.Rules[0].Rate != 4 || a.Rules[0].Decision != nil || len(a.Rules[0].Tiers) != 1 {
				t.Errorf("the rules of event %d are %+v", i, a.Rules)
			}
		}
		// While the archive is unavailable, what this instance has counted is told, and that it is that.
		kept.lag = 2 * time.Second
		kept.lost.Store(true)
		s.call("POST /v1/check", aliceAsks).want(t, 200, nil)
		for i := 0; !a.Local; i++ {
			if a = f.next(t); i > 3 {
				t.Fatalf("%+v", a)
			}
		}
		if a.Requests != 1 || a.Recorder.UnavailableSince == nil || a.Recorder.Error == "" || a.Recorder.Pending == 0 {
			t.Errorf("while the archive is unavailable: %+v", a)
		}
		// Then there is no first event, and the stream begins all the same.
		late := follow(t, s)
		if a := late.next(t); !a.Local {
			t.Errorf("%+v", a)
		}
		late.leave()
		<-late.ended
		kept.lost.Store(false)
		end()
		<-f.ended
	})
}

// A stream ends with the token that it was opened by, when the server stops, and when
// the client leaves.
func TestStreamEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var list atomic.Pointer[trust.List]
		list.Store(tokens(t)())
		recorder, _, _ := newRecorder(t, stats.Options{Clock: time.Now})
		stopping := make(chan struct{})
		s := newStand(t, Options{Stats: recorder, Clock: time.Now, Service: manage.Service{Tokens: list.Load}, Stopping: stopping})
		end := runs(t, recorder)
		bob, alice, leaver := follow(t, s, as(readerToken)), follow(t, s, as(adminToken)), follow(t, s, as(adminToken))
		for _, f := range []*following{bob, alice, leaver} {
			f.next(t)
		}
		leaver.leave()
		<-leaver.ended
		without, err := trust.ParseTokens([]byte("alice admin " + adminToken))
		if err != nil {
			t.Fatal(err)
		}
		list.Store(without)
		<-bob.ended
		for range 3 {
			alice.next(t)
		}
		close(stopping)
		<-alice.ended
		if again := s.call("GET /v1/stats/stream", "", as(readerToken)); again.StatusCode != 401 {
			t.Errorf("%d", again.StatusCode)
		}
		end()
		after := follow(t, s, as(adminToken)) // counting has stopped
		<-after.ended
	})
}

func TestStreamHead(t *testing.T) {
	o := Options{}
	withStats(t, &o)
	o.Stopping = nil
	s := newStand(t, o).serve()
	r := s.call("HEAD /v1/stats/stream", "").want(t, 200, nil)
	if r.Header.Get("Content-Type") != "text/event-stream" || len(r.body) != 0 {
		t.Errorf("%v %s", r.Header, r.body)
	}
}

// The server's own deadlines, which are for calls that end, do not end a stream; over
// either protocol.
func TestStreamOutlivesDeadlines(t *testing.T) {
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprint("HTTP/", version), func(t *testing.T) {
			t.Parallel()
			recorder, _, _ := newRecorder(t, stats.Options{})
			s := newStand(t, Options{Stats: recorder, Clock: time.Now})
			s.patience = 400 * time.Millisecond // less than between two events
			server := httptest.NewUnstartedServer(s)
			server.EnableHTTP2 = version == 2
			server.Config.ReadTimeout, server.Config.WriteTimeout = 2500*time.Millisecond, 2500*time.Millisecond
			server.StartTLS()
			defer server.Close()
			defer server.CloseClientConnections()
			runs(t, recorder)
			for tries := 1; ; tries++ {
				stood := standstill()
				proto, events, err := fiveEvents(t, server)
				if longest := stood(); (err != nil || events < 5) && longest > 100*time.Millisecond && tries < 20 {
					t.Logf("%d events, %v; but the machine stood still for %v", events, err, longest)
					continue
				}
				if err != nil || proto != version || events < 5 {
					t.Errorf("over HTTP/%d there were %d events, %v", proto, events, err)
				}
				break
			}
		})
	}
}

// fiveEvents follows a stream until it has told five events, or ends.
func fiveEvents(t *testing.T, server *httptest.Server) (proto, events int, err error) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	r, err := http.NewRequestWithContext(ctx, "GET", server.URL+"/v1/stats/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := server.Client().Do(r)
	if err != nil {
		return 0, 0, err
	}
	defer answer.Body.Close()
	readEvents(answer.Body, func(string) {
		if events++; events == 5 {
			leave()
		}
	})
	return answer.ProtoMajor, events, nil
}

// standstill watches for how long at a time the machine does not run this process. What it
// returns ends that.
func standstill() (longest func() time.Duration) {
	const nap = 10 * time.Millisecond
	stop, most := make(chan struct{}), make(chan time.Duration)
	go func() {
		stood := time.Duration(0)
		for {
			began := time.Now()
			select {
			case <-time.After(nap):
				stood = max(stood, time.Since(began)-nap)
			case <-stop:
				most <- stood
				return
			}
		}
	}()
	return func() time.Duration {
		close(stop)
		return <-most
	}
}

// However many open streams, as many are answered as may follow, and the others are told
// to come again. All end when the server stops.
func TestManyStreams(t *testing.T) {
	recorder, _, _ := newRecorder(t, stats.Options{})
	stopping := make(chan struct{})
	s := newStand(t, Options{Stats: recorder, Clock: time.Now, Stopping: stopping, Service: manage.Service{Limits: manage.GuardOptions{Calls: weir.Limit{N: 1000, Period: time.Second}}}})
	s.serve()
	runs(t, recorder)
	const asked = 3 * stats.DefaultMaxSubscribers
	answers := make(chan *http.Response, asked)
	for range asked {
		go func() {
			r, err := s.server.Client().Get(s.server.URL + "/v1/stats/stream")
			if err != nil {
				t.Error(err)
			}
			answers <- r
		}()
	}
	following := 0
	read := make(chan int)
	for range asked {
		r := <-answers
		if r == nil {
			continue
		}
		switch {
		case r.StatusCode == 503 && r.Header.Get("Retry-After") == "5":
			r.Body.Close()
		case r.StatusCode != 200:
			t.Errorf("one is answered %d", r.StatusCode)
		default:
			following++
			go func() {
				defer r.Body.Close()
				n := 0
				readEvents(r.Body, func(string) { n++ })
				read <- n
			}()
		}
	}
	if following != stats.DefaultMaxSubscribers {
		t.Errorf("%d follow", following)
	}
	close(stopping)
	for range following {
		if n := <-read; n == 0 {
			t.Error("one has read nothing")
		}
	}
	if sub, err := recorder.Subscribe(); err != nil {
		t.Error(err)
	} else {
		sub.Close()
	}
}
