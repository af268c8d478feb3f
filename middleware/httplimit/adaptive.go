package httplimit

import (
	"errors"
	"io"
	"net/http"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/front"
	"github.com/weirhq/weir/internal/overload"
)

// Adaptive is a limit of the requests in flight in the handlers of a middleware. It adapts
// between Min and Max to how many requests the handlers can answer at the same time. Further
// requests are answered with 503, first those of low priority. Only requests that the rules
// allow count, so denied ones are charged nevertheless. A place is free when the handler has
// returned. A request that waits for its client, to send its body or to read the response, can lose its place
// to another client; if there is none when the client goes on with the body, reading it is an error.
type Adaptive struct{ Min, Max int }

// AdaptiveLimit returns the state of Options.Adaptive. Observers of the engine that are an
// [engine.AdaptiveObserver], such as metrics, show it, too.
func (m *Middleware) AdaptiveLimit() engine.AdaptiveLimit { return m.front.AdaptiveLimit() }

// adapted is a handler behind the adaptive limit, for requests of a priority.
type adapted struct {
	by       *Middleware
	next     http.Handler
	priority overload.Priority
}

func (a *adapted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := a.by.front
	client, _ := f.Clients.Client(r.RemoteAddr, r.Header)
	p := &front.Waiting{Now: f.Now}
	if !f.Adaptive.Enter(f.Now(), a.priority, client, &p.Place) {
		a.by.deny(w, r, &Denial{Denial: engine.DescribeOverload(new(engine.Verdict))}, nil)
		return
	}
	n, is := w.(*noted)
	if !is {
		n = &noted{ResponseWriter: w}
	}
	n.place = p
	if r.Body != nil && r.Body != http.NoBody {
		own := *r
		own.Body = &waitingBody{r.Body, p}
		r = &own
	}
	ended := false
	defer func() {
		p.Leave(f.Now(), overload.OutcomeOf(r.Context(), ended, n.status))
	}()
	a.next.ServeHTTP(n, r)
	ended = true
}

// waitingBody is the body of a request that has a place, or has lost it while its client sent nothing.
type waitingBody struct {
	io.ReadCloser
	place *front.Waiting
}

var errOverloaded = errors.New("httplimit: other requests took the place of this one while it waited for its client")

func (b *waitingBody) Read(to []byte) (int, error) {
	return b.place.Read(b.ReadCloser, to, errOverloaded)
}
