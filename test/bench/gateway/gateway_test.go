package gateway

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weirhq/weir/test/bench/internal/bench"
)

func TestRun(t *testing.T) {
	r := bench.Test(t)
	run(r, options{callers: 4, requests: 10, rounds: 1})
	b := r.File("gateway.txt").String()
	if rows := strings.Count(b, "\n|"); rows != 2+3*(2*len(things())+len(chats()))+2+3 || strings.Count(b, counting.name+" ") != len(chats()) || strings.Contains(b, "| 0 µs |") {
		t.Errorf("%d rows in\n%s", rows, b)
	}
}

// An answer that is not the right one fails the run: one without limits from whom they
// are expected, one with another length, and one that is no success.
func TestWrongAnswersAreSeen(t *testing.T) {
	address := start(t, http.HandlerFunc(serveThings), []contestant{itself, bare})[1]
	q := things()[0]
	ask := func(c contestant, q question) error { return q.ask(t, address, c, 1)(0)(0) }
	if err := ask(bare, q); err != nil {
		t.Fatal(err)
	}
	if err := ask(ours, q); err == nil || !strings.Contains(err.Error(), "limits") {
		t.Errorf("missing headers: %v", err)
	}
	other := q
	other.body++
	if err := ask(bare, other); err == nil || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("another length: %v", err)
	}
	other.text = []byte("GET / HTTP/1.1\r\n\r\n")
	if err := ask(bare, other); err == nil || !strings.Contains(err.Error(), "400") {
		t.Errorf("no success: %v", err)
	}
}
