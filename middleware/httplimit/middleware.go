package httplimit

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/clientip"
	"github.com/weirhq/weir/rule"
)

// Middleware limits requests. It is safe for concurrent use, and may wrap any number
// of handlers.
type Middleware struct {
	options Options
	engine  *engine.Engine
	clients *clientip.Resolver
	held    atomic.Int64
	mounts  *atomic.Int64 // of all middlewares of the engine

	told  [codes]atomic.Bool
	users sameness
	keys  sameness
}

// Wrap returns a handler that lets through to next what the engine admits.
func (m *Middleware) Wrap(next http.Handler) http.Handler {
	m.mounts.Add(1)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r, ok := m.admit(w, r); ok {
			m.serve(next, w, r)
		}
	})
}

// Admit judges a request, and holds it if it has to wait for its turn. If it may go
// on, Admit returns true and the request to go on with; if not, it has been
// answered. It is for frameworks that Wrap does not fit.
func (m *Middleware) Admit(w http.ResponseWriter, r *http.Request) (*http.Request, bool) {
	if m.mounts.Load() < 2 {
		m.mounts.Add(2) // it may be called from anywhere
	}
	return m.admit(w, r)
}

func (m *Middleware) admit(w http.ResponseWriter, r *http.Request) (*http.Request, bool) {
	if m.options.Skip != nil && m.options.Skip(r) {
		return r, true
	}
	again := m.mounts.Load() > 1
	if again && r.Context().Value(mark{m.engine}) != nil {
		m.tell(mountedTwice, "path", r.URL.Path)
		return r, true // it has paid already
	}
	p := passes.Get().(*pass)
	defer p.release()
	if err := m.read(p, r); err != nil {
		m.fail(w, r, p, err)
		return r, false
	}
	if !m.judge(w, r, p) {
		return r, false
	}
	if again {
		r = r.WithContext(context.WithValue(r.Context(), mark{m.engine}, true))
	}
	return r, true
}

// judge reports whether the request may go on; if not, it has answered.
func (m *Middleware) judge(w http.ResponseWriter, r *http.Request, p *pass) bool {
	v := &p.verdict
	if err := m.engine.Check(r.Context(), &p.request, v); err != nil {
		m.fail(w, r, p, err)
		return false
	}
	switch {
	case !v.Allowed:
		p.denial.describe(v)
		m.deny(w, r, p)
		return false
	case v.Delay > 0:
		if !m.hold(w, r, p) {
			return false
		}
	}
	writeHeaders(w.Header(), v, v.Delay, 0, m.options.Headers)
	return true
}

// fail answers a request that the engine could not judge. The store's trouble is not
// among the reasons: for that, each rule has said what to do.
func (m *Middleware) fail(w http.ResponseWriter, r *http.Request, p *pass, err error) {
	var invalid *weir.InvalidError
	var values *rule.ValuesError
	switch {
	case errors.As(err, &values):
		p.denial = ambiguous(&p.verdict, values.What)
	case errors.As(err, &invalid):
		m.tell(notJudged, "path", r.URL.Path, "error", err.Error())
		p.denial = senseless(&p.verdict)
	case errors.Is(err, context.Canceled):
		w.WriteHeader(statusClientGone)
		return
	default:
		p.denial = unavailable(&p.verdict)
	}
	m.deny(w, r, p)
}

// statusClientGone is what access logs call a client that did not wait for its
// answer. Nobody else sees it.
const statusClientGone = 499
