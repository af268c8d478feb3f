package httplimit

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// queue lets one request a second through and holds four more.
const queue = "rules: [{id: slow, key: global, algorithm: leaky_bucket, limit: 1/1s, burst: 5, shape: true}]"

// answer is when a request was answered, and how.
type answer struct {
	*httptest.ResponseRecorder
	after time.Duration
}

// start sends a request in the background.
func (b *bench) start(ctx context.Context) <-chan answer {
	done := make(chan answer, 1)
	began := time.Now()
	go func() {
		w := b.send(from("203.0.113.7:1", "GET", "/").WithContext(ctx))
		done <- answer{w, time.Since(began)}
	}()
	synctest.Wait()
	return done
}

// Requests leave at the rate of the limit, in the order in which they came.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newLiveBench(t, queue, Options{})
		var all []<-chan answer
		for range 6 {
			all = append(all, b.start(t.Context()))
		}
		if b.Delayed() != 4 {
			t.Errorf("%d are held", b.Delayed())
		}
		for i, done := range all[:5] {
			if a := <-done; a.Code != 200 || a.after != time.Duration(i)*time.Second {
				t.Errorf("request %d: %d after %v", i, a.Code, a.after)
			}
		}
		if a := <-all[5]; a.Code != 429 || a.after != 0 || a.Header().Get("Retry-After") != "1" {
			t.Errorf("beyond the queue: %d after %v, %v", a.Code, a.after, a.Header())
		}
		if b.Delayed() != 0 {
			t.Errorf("%d are held in the end", b.Delayed())
		}
	})
}

// The headers of a request that was held are about the moment of its answer.
func TestHoldHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newLiveBench(t, queue, Options{})
		b.ask()
		b.ask()
		if a := <-b.start(t.Context()); a.after != time.Second*1 || limits(a.Header()) == "" {
			t.Errorf("after %v", a.after)
		} else if got := a.Header().Get("RateLimit"); got != `"slow";r=3;t=1` {
			t.Errorf("%s", got)
		}
	})
}

// A client that leaves gives its place to the next.
func TestLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newLiveBench(t, queue, Options{})
		b.ask()
		ctx, leave := context.WithCancel(t.Context())
		gone := b.start(ctx)
		if b.Delayed() != 1 {
			t.Fatalf("%d are held", b.Delayed())
		}
		leave()
		if a := <-gone; a.Code != 499 || a.after != 0 {
			t.Errorf("%d after %v", a.Code, a.after)
		}
		if a := <-b.start(t.Context()); a.Code != 200 || a.after != time.Second {
			t.Errorf("the next: %d after %v", a.Code, a.after)
		}
		if b.served.Load() != 2 || b.Delayed() != 0 {
			t.Errorf("%d served, %d held", b.served.Load(), b.Delayed())
		}
	})
}

// What would outlast its deadline is denied at once, and gives its place back.
func TestDeadline(t *testing.T) {
	server := &http.Server{WriteTimeout: 1500 * time.Millisecond}
	for name, limit := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, server.WriteTimeout)
		},
		"write timeout": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithCancel(context.WithValue(ctx, http.ServerContextKey, server))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newLiveBench(t, queue, Options{})
				b.ask()
				short, cancel := limit(t.Context())
				defer cancel()
				first := b.start(short) // 1 s is short enough
				second := b.start(short)
				a := <-second
				if a.Code != 429 || a.after != 0 || a.Header().Get("Retry-After") != "1" || !strings.Contains(a.Body.String(), `"violated-policies":["slow"]`) {
					t.Errorf("%d after %v: %v %s", a.Code, a.after, a.Header(), a.Body)
				}
				if a := <-b.start(t.Context()); a.after != 2*time.Second {
					t.Errorf("its place was not given back: %v", a.after)
				}
				if a := <-first; a.Code != 200 || a.after != time.Second {
					t.Errorf("%d after %v", a.Code, a.after)
				}
			})
		})
	}
}

// A deadline that comes although it was far enough away is the server's fault.
func TestDeadlineWhileHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newLiveBench(t, queue, Options{})
		b.ask()
		ctx, cancel := context.WithCancelCause(t.Context())
		done := b.start(late{ctx})
		cancel(nil)
		if a := <-done; a.Code != 503 || a.Header().Get("Retry-After") == "" {
			t.Errorf("%d", a.Code)
		}
	})
}

// late is a context that ends by a deadline that it did not announce.
type late struct{ context.Context }

func (l late) Err() error {
	if l.Context.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
}

// However many requests come, at most MaxDelayed are delayed; further requests are
// denied and refunded.
func TestMaxDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const held, beyond = 1000, 500
		b := newLiveBench(t, "rules: [{id: slow, key: global, algorithm: leaky_bucket, limit: 1/1s, burst: 5000, shape: true}]", Options{})
		b.ask()
		codes := make(map[int]int)
		retry := make(map[string]int)
		var mu sync.Mutex
		var all sync.WaitGroup
		for range held + beyond {
			all.Go(func() {
				w := b.ask()
				mu.Lock()
				defer mu.Unlock()
				codes[w.Code]++
				retry[w.Header().Get("Retry-After")]++
			})
		}
		synctest.Wait()
		mu.Lock()
		if b.Delayed() != held || codes[503] != beyond || len(codes) != 1 || retry[""] != 0 {
			t.Errorf("%d are held, answers %v", b.Delayed(), codes)
		}
		mu.Unlock()
		all.Wait()
		if codes[200] != held || b.Delayed() != 0 || b.served.Load() != held+1 {
			t.Errorf("answers %v, %d served, %d held", codes, b.served.Load(), b.Delayed())
		}
	})
}

func TestMaxDelayedSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newLiveBench(t, queue, Options{MaxDelayed: 1})
		b.ask()
		first := b.start(t.Context())
		if a := <-b.start(t.Context()); a.Code != 503 || a.after != 0 || a.Header().Get("Retry-After") != "2" || !strings.Contains(a.Body.String(), "temporary-reduced-capacity") {
			t.Errorf("%d after %v: %v %s", a.Code, a.after, a.Header(), a.Body)
		}
		<-first
		if a := <-b.start(t.Context()); a.Code != 200 || a.after != time.Second {
			t.Errorf("its place was not given back: %d after %v", a.Code, a.after)
		}
	})
}

// A real client that leaves, and a real server.
func TestLeaveServer(t *testing.T) {
	b := newLiveBench(t, "rules: [{id: slow, key: ip, algorithm: leaky_bucket, limit: 1/1h, burst: 5, shape: true}]", Options{})
	s := httptest.NewServer(b)
	defer s.Close()
	client := s.Client()
	defer client.CloseIdleConnections()
	get := func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, "GET", s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err == nil {
			answer.Body.Close()
		}
		return err
	}
	if err := get(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { left <- get(ctx) }()
	eventually(t, func() bool { return b.Delayed() == 1 })
	leave()
	if err := <-left; err == nil {
		t.Error("it was answered")
	}
	eventually(t, func() bool { return b.Delayed() == 0 })
	if b.served.Load() != 1 {
		t.Errorf("%d served", b.served.Load())
	}
}

// eventually waits for something that happens in another goroutine.
func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it did not happen within ten seconds")
		}
	}
}
