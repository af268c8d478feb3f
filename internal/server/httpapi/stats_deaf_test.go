package httpapi

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/stats"
)

// deafRules are so many that an event about them fills the buffers of a connection.
const deafRules = 200

func manyNames() string {
	var b strings.Builder
	b.WriteString("rules:\n")
	for i := range deafRules {
		fmt.Fprintf(&b, "- {id: %s%d, match: {path: /%d}, key: global, limit: 1000000/1s}\n", strings.Repeat("long-", 15), i, i)
	}
	return b.String()
}

// smallBuffers makes connections that buffer little.
func smallBuffers(ctx context.Context, conn net.Conn) context.Context {
	if err := conn.(*net.TCPConn).SetWriteBuffer(4 << 10); err != nil {
		panic(err)
	}
	return ctx
}

// A client that opens streams and reads nothing is dropped. Until then, however long that is, it
// delays neither other streams nor checks.
func TestStreamToTheDeaf(t *testing.T) {
	t.Run("dropped", func(t *testing.T) { streamToTheDeaf(t, 300*time.Millisecond) })
	t.Run("kept", func(t *testing.T) { streamToTheDeaf(t, time.Hour) })
}

func streamToTheDeaf(t *testing.T, patience time.Duration) {
	recorder, _, _ := newRecorder(t, stats.Options{})
	s := newStand(t, Options{Service: manage.Service{Rules: openRules(t, manyNames())}, Stats: recorder, Clock: time.Now})
	s.patience = patience
	var ended sync.WaitGroup
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Deaf") != "" {
			defer ended.Done()
		}
		s.ServeHTTP(w, r)
	}))
	server.Config.ConnContext = smallBuffers
	server.Start()
	defer server.Close()
	runs(t, recorder)

	busy, stop := context.WithCancel(t.Context())
	var judging sync.WaitGroup
	judged := make(chan struct{})
	judging.Go(func() {
		for i := 0; busy.Err() == nil; i++ {
			if r := direct(s, "POST", "/v1/check", fmt.Sprintf(`{"path":"/%d"}`, i%deafRules)); r.StatusCode != 200 {
				t.Errorf("%d %s", r.StatusCode, r.body)
			}
			select {
			case judged <- struct{}{}:
			case <-time.After(time.Millisecond):
			case <-busy.Done():
			}
		}
	})
	var deaf []net.Conn
	for range 5 {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		ended.Add(1)
		fmt.Fprintf(conn, "GET /v1/stats/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Deaf: yes\r\n\r\n")
		deaf = append(deaf, conn)
	}
	r, err := http.NewRequestWithContext(busy, "GET", server.URL+"/v1/stats/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Body.Close()
	heard := make(chan time.Time, 1000)
	go func() {
		readEvents(reader.Body, func(string) { heard <- time.Now() })
		close(heard)
	}()
	if patience == time.Hour {
		for i := range 5 { // the second event fills the buffers of the deaf
			if _, ok := <-heard; !ok {
				t.Fatalf("who reads has heard %d events", i)
			}
			<-judged
		}
		for _, conn := range deaf {
			conn.Close()
		}
	}
	ended.Wait() // the deaf have been dropped, with their connections open, or have left
	after := time.Now()
	for at := range heard {
		if at.After(after) {
			break // who reads goes on reading
		}
	}
	stop()
	judging.Wait()
	for range heard { // until its stream has ended
	}
	if n := len(s.consulting); n != 0 {
		t.Errorf("%d turns were not given back", n)
	}
}
