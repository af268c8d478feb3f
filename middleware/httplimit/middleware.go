// Package httplimit limits the requests of any http.Handler.
//
//	limit, err := httplimit.New(engine, httplimit.Options{})
//	http.ListenAndServe(addr, limit.Wrap(mux))
//
// Wrap is a func(http.Handler) http.Handler, as chi and gorilla expect. Frameworks with
// their own handlers call Allow. The ResponseWriter is passed on unchanged, unless a
// rule settles by the response or limits how many requests are in flight; in all cases the
// handler can flush and hijack it.
//
// With Wrap, rules can settle by the response: by its status, or by the tokens that a
// language model used. Your program can do so with Options.Actual. What a request may cost
// is reserved first. To count tokens, the body of the request is read, up to 32 MiB; the
// response is never buffered. An expression can read bodies of up to 1 MiB; only then are
// they read or kept.
//
// With Wrap, rules can limit how many requests are in flight. A request is in flight until its
// handler has returned or panicked or, if it took over the connection, until that is closed.
//
// An allowed request gets headers about the limit with the fewest units left, and a
// denied one gets a complete answer: see [WriteHeaders] and [Denial]. A request that a
// rule shapes is delayed until its turn, and frees its turn if the client disconnects.
//
// The client's address is that of the connection. Name the proxies in front of your
// server in Options.TrustedProxies; otherwise all requests seem to come from them.
//
// Each likely mistake in the configuration is logged once, with a code and a remedy;
// docs/reference/middleware.md explains the codes.
package httplimit

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/front"
	"github.com/weirhq/weir/internal/overload"
	"github.com/weirhq/weir/rule"
)

// Middleware limits requests. It is safe for concurrent use, and can wrap any number of
// handlers.
type Middleware struct {
	options Options
	engine  *engine.Engine
	front   *front.Front
	mounts  *atomic.Int64 // of all middlewares of the engine
	users   sameness
	keys    sameness
}

// Wrap returns a handler that passes allowed requests to next.
func (m *Middleware) Wrap(next http.Handler) http.Handler {
	m.mounts.Add(1)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.serve(w, r, next, nil) })
}

// Proxy is a middleware for a proxy that forwards requests itself. It does not use Options.Adaptive.
//
// A request needs less memory than with Wrap, under three conditions. Requests must be the proxy's own,
// because they are changed. A handler that has returned must not use its ResponseWriter any more; a
// transport may still read the body of the request. engine.HoldOf finds no hold.
type Proxy struct{ by *Middleware }

// Exchange is what a middleware and a proxy tell each other about one request.
type Exchange struct {
	// Priority is that of the request, from rule.Low to rule.Critical. The middleware sets it.
	Priority rule.Priority

	// Short is whether the middleware has read the body, and it is in memory: reading it does not fail and
	// does not wait for the client, and http.Transport sends it together with the header. The middleware sets it.
	Short bool

	// Lost is whether the response is the proxy's own, because an upstream that was sent the request
	// did not answer: it is not known whether the request was done. The proxy sets it.
	Lost bool
}

// ErrCut is returned by Write of the ResponseWriter when a rule has cut the response, which is complete
// nevertheless: nothing more of it is sent.
var ErrCut = errors.New("httplimit: the response was cut, because it used more tokens than were reserved")

// Proxy returns a middleware for a proxy.
func (m *Middleware) Proxy() *Proxy {
	m.mounts.Add(1)
	return &Proxy{m}
}

// Serve passes an allowed request to next.
func (p *Proxy) Serve(w http.ResponseWriter, r *http.Request, x *Exchange, next http.Handler) {
	p.by.serve(w, r, next, x)
}

func (m *Middleware) serve(w http.ResponseWriter, r *http.Request, next http.Handler, x *Exchange) {
	r, s, p, ok := m.allow(w, r, x, nil)
	if !ok {
		return
	}
	defer s.free()
	defer freeBody(r)
	if s != nil && r.Body != nil && r.Body != http.NoBody && r.ContentLength != 0 && (x == nil || !x.Short) {
		if _, isRead := r.Body.(*restored); !isRead {
			r.Body = s.Upload(r.Body, m.options.BodyRate)
		}
	}
	switch {
	case x != nil:
		x.Priority = cmp.Or(p, rule.Normal)
	case m.front.Adaptive != nil && p != 0:
		next = &adapted{m, next, overload.Priority(p)}
	}
	m.observe(next, w, r, s)
}

// Allow decides a request, and delays it if it must wait for its turn. If the request
// may proceed, Allow returns true and the request to continue with; otherwise it has
// already answered. Use it in frameworks that do not accept Wrap. It does not see the response, so
// every request costs its estimate, and its place is free after the rule's HoldTTL; it does not
// wait for one.
func (m *Middleware) Allow(w http.ResponseWriter, r *http.Request) (*http.Request, bool) {
	if m.mounts.Load() < 2 {
		m.mounts.Add(2) // it may be called from anywhere
	}
	check := func(ctx context.Context, req *rule.Request, v *engine.Verdict, d *engine.Denial) (bool, error) {
		ok, err := m.front.Gate.Check(ctx, req, v, d)
		if table, _ := m.engine.Rules(); ok && (m.options.Actual != nil || table.Settles() && v.Settles()) {
			m.front.Tell(notSettled, "path", req.Path)
		}
		if ok && v.Places() {
			m.front.Tell(notReleased, "path", req.Path)
		}
		return ok, err
	}
	r, _, _, ok := m.allow(w, r, nil, check)
	freeBody(r) // nobody says when it has been read
	return r, ok
}

// decide asks the gate about a request.
type decide func(context.Context, *rule.Request, *engine.Verdict, *engine.Denial) (bool, error)

// allow also returns what is to be done after an allowed request, or nil, and its priority, 0 if the request was
// skipped. For a framework, which checks instead of reserving, nothing can be done then. The exchange is nil if there is no
// proxy.
func (m *Middleware) allow(w http.ResponseWriter, r *http.Request, x *Exchange, check decide) (*http.Request, *settlement, rule.Priority, bool) {
	if m.options.Skip != nil && m.options.Skip(r) {
		return r, nil, 0, true
	}
	again := m.mounts.Load() > 1
	if again && r.Context().Value(mark{m.engine}) != nil {
		m.front.Tell(front.MountedTwice, "path", r.URL.Path)
		return r, nil, rule.Normal, true // it has paid already
	}
	p := passes.Get().(*pass)
	var s *settlement
	defer func() {
		if s == nil { // else it is released when that ends
			p.release()
		}
	}()
	if err := m.readRequest(p, r); err != nil {
		p.denial.Denial = engine.DescribeError(new(engine.Verdict), err) // p's is still that of an earlier request
		m.stop(w, r, p, nil, err)
		return r, nil, rule.Normal, false
	}
	prompt, err := m.readPrompt(w, r, p)
	if err != nil {
		return r, nil, rule.Normal, false // it has been answered
	}
	body := m.offerBody(w, r, &p.request, prompt)
	v, decide := &p.verdict, m.front.Reserve
	if check != nil {
		decide = check
	}
	ok, err := decide(r.Context(), &p.request, v, &p.denial.Denial)
	if body != nil && body.denied != nil {
		ok, err, p.denial.Denial = false, body.denied.err, *body.denied.denial
	}
	if !ok {
		prompt.writeHeaders(w.Header(), v, m.options.Headers)
		m.stop(w, r, p, prompt, err)
		prompt.close()
		freeBody(r)
		return r, nil, rule.Normal, false
	}
	writeHeaders(w.Header(), v, v.Delay, 0, m.options.Headers)
	prompt.writeHeaders(w.Header(), v, m.options.Headers)
	if check == nil {
		s = m.settles(p, prompt, x)
	}
	ctx := r.Context()
	if again {
		ctx = context.WithValue(ctx, mark{m.engine}, true)
	}
	if s != nil && x == nil {
		ctx = s.Context(ctx) // the handler may settle
	}
	restores := prompt != nil && len(prompt.body) > 0
	if restores && x == nil || ctx != r.Context() {
		r = r.WithContext(ctx) // a copy
	}
	if restores {
		prompt.restore(r, s, x)
	}
	if s != nil && s.noted.kept != nil {
		askPlain(r)
	}
	return r, s, v.Priority, true
}

// stop answers a request that may not go on, maybe because of an error.
func (m *Middleware) stop(w http.ResponseWriter, r *http.Request, p *pass, prompt *prompt, err error) {
	if errors.Is(err, context.Canceled) {
		w.WriteHeader(statusClientGone)
		return
	}
	if wrong, ok := errors.AsType[*rule.TokenError](err); ok {
		w.Header()["Www-Authenticate"] = []string{front.Challenge(wrong)}
	}
	_, client := errors.AsType[*rule.RequestError](err) // it is no mistake of the program
	if _, invalid := errors.AsType[*weir.InvalidError](err); invalid && !client {
		m.front.Tell(front.NotChecked, "path", r.URL.Path, "error", err.Error())
	}
	m.deny(w, r, &p.denial, prompt)
}

// statusClientGone is what access logs call a client that did not wait for its
// answer. It appears only there.
const statusClientGone = 499

// Delayed returns how many requests are delayed, or wait for a place, now.
func (m *Middleware) Delayed() int { return m.front.Gate.Delayed() }

// patience is for how long the server would still write an answer.
func patience(ctx context.Context) time.Duration {
	if s, ok := ctx.Value(http.ServerContextKey).(*http.Server); ok && s.WriteTimeout > 0 {
		return s.WriteTimeout
	}
	return 1<<63 - 1
}

// mark marks the context of a request that an engine has checked.
type mark struct{ by *engine.Engine }

// mounts is how many handlers are wrapped for an engine, by whichever middleware. As
// long as it is one, no request can come to the engine a second time, and none needs
// a mark, which would be two allocations.
var mounts sync.Map // weak.Pointer[engine.Engine] → *atomic.Int64

// mountsOf counts for one engine, as long as that lives.
func mountsOf(e *engine.Engine) *atomic.Int64 {
	key := weak.Make(e)
	n, known := mounts.LoadOrStore(key, new(atomic.Int64))
	if !known {
		runtime.AddCleanup(e, func(key weak.Pointer[engine.Engine]) { mounts.Delete(key) }, key)
	}
	return n.(*atomic.Int64)
}
