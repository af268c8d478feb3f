package httpapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
)

// The body and the rules of an ordinary check: two limits apply.
const ordinary = `{"ip":"198.51.100.7","user":"alice","tier":"pro","method":"GET","host":"api.example.com","path":"/api/items","headers":{"X-Tenant":"acme"}}`

// bare decodes the same question and encodes the same kind of answer with the library,
// and decides nothing.
func bare(answer *CheckAnswer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q CheckRequest
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			panic(err)
		}
	})
}

// discard is a ResponseWriter that costs nothing.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}

// body is a request body that can be read again.
type body struct{ strings.Reader }

func (*body) Close() error { return nil }

// repeating returns a function that asks a question again and again.
func repeating(h http.Handler, question string) func() {
	r := httptest.NewRequest("POST", "/v1/check", nil)
	r.Host = "127.0.0.1:8080"
	w, content := &discard{http.Header{}}, new(body)
	r.Body, r.ContentLength = content, int64(len(question))
	return func() {
		content.Reset(question)
		clear(w.header)
		h.ServeHTTP(w, r)
	}
}

func measure(b *testing.B, h http.Handler) {
	ask := repeating(h, ordinary)
	b.ReportAllocs()
	for b.Loop() {
		ask()
	}
}

// A check allocates its call, the id of that, and a copy of the body; a map of headers is three more, and
// a denial has texts of its own.
func TestCheckAllocations(t *testing.T) {
	s := newStand(t, Options{})
	for question, most := range map[string]float64{
		`{"user":"bob","tier":"enterprise","path":"/api/items","cost":1}`:                  3,
		`{"user":"bob","tier":"enterprise","path":"/api/items","headers":{"X-Trace":"a"}}`: 6,
		ordinary: 10,
	} {
		ask := repeating(s, question)
		for range 1100 { // beyond the limit of the ordinary one
			ask()
		}
		if got := testing.AllocsPerRun(200, ask); got > most && !testkit.Race { // which allocates, too
			t.Errorf("%s: %v allocations, want at most %v", question, got, most)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	s := newStand(b, Options{})
	var answer CheckAnswer
	s.call("POST /v1/check", ordinary).want(b, http.StatusOK, &answer)
	if !answer.Allowed || len(answer.Results) != 2 {
		b.Fatalf("the question is not an ordinary one: %+v", answer)
	}
	b.Run("bare", func(b *testing.B) { measure(b, bare(&answer)) })
	b.Run("weir", func(b *testing.B) { measure(b, s) })
}

// BenchmarkJSON decodes a question and encodes its answer, by hand and with the library,
// in turns, so that a noisy machine is as noisy for both. Decision 36 has what it showed.
func BenchmarkJSON(b *testing.B) {
	s := newStand(b, Options{})
	var answer CheckAnswer
	s.call("POST /v1/check", ordinary).want(b, http.StatusOK, &answer)
	var v engine.Verdict
	if err := s.engine.Check(b.Context(), &rule.Request{User: "alice", Path: "/api/items"}, &v); err != nil {
		b.Fatal(err)
	}
	body, room := []byte(ordinary), writer{out: make([]byte, 0, 4096)}
	ways := []func(){
		func() {
			var q CheckRequest
			if q.parse(body, nil) != nil {
				b.Fatal("the question is wrong")
			}
			room = writer{out: room.out[:0]}
			manage.TellVerdict(&room, &v, true)
		},
		func() {
			var q CheckRequest
			if decode(body, &q) != nil {
				b.Fatal("the question is wrong")
			}
			if _, err := json.Marshal(&answer); err != nil {
				b.Fatal(err)
			}
		},
	}
	took := make([]time.Duration, len(ways))
	rounds := 0
	for b.Loop() {
		for i := range ways {
			n := (i + rounds) % len(ways) // each is first as often
			start := time.Now()
			for range 100 {
				ways[n]()
			}
			took[n] += time.Since(start)
		}
		rounds++
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(took[0])/float64(100*rounds), "hand-ns")
	b.ReportMetric(float64(took[1])/float64(100*rounds), "library-ns")
	b.ReportMetric(float64(took[1])/float64(took[0]), "times")
}
