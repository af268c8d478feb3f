package redis

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"
)

// Commands that run Lua: a function, a script that Redis has, by its SHA-1, or one that it is sent.
const (
	fcall   = "FCALL"
	evalSHA = "EVALSHA"
	eval    = "EVAL"
)

// functions is whether a store calls functions, and who loads them.
type functions struct {
	loader  Loader                // nil if the client cannot
	refused atomic.Pointer[error] // why Redis runs scripts instead; nil if it need not
	loading atomic.Bool           // somebody does it
}

var errNoLoader = errors.New("redis: the client has no method Load")

// ScriptsBecause returns why Redis runs the store's Lua as scripts: it has no functions, or the user may
// not load or call them. It is nil if Redis runs it as functions, which takes less time. It may change
// after the first check.
func (s *Store) ScriptsBecause() error {
	if s.functions.loader == nil {
		return errNoLoader
	}
	if why := s.functions.refused.Load(); why != nil {
		return *why
	}
	return nil
}

// execute has Redis do what a request asks for: by a function or, if that is not to be had, by a script that
// does the same. A function that Redis has refused to call has done nothing.
func (s *Store) execute(ctx context.Context, r *request, now int64) (string, error) {
	arg := r.encode(now)
	if s.functions.loader != nil && s.functions.refused.Load() == nil {
		answer, err := s.link.client.Eval(ctx, fcall, s.library.function(r.entry), r.keys, arg)
		if !s.isRefused(err, r.keys[0]) {
			return answer, err
		}
	}
	return s.library.script(r.entry, r.needs).run(ctx, s.link.client, r.keys, arg)
}

// isRefused reports whether Redis has not called a function, and a script may be run: a full Redis still
// runs what writes nothing; there may be no such function, which is loaded then; or there are no functions
// at all for this user.
func (s *Store) isRefused(err error, key string) bool {
	reply, replied := replyOf(err)
	switch {
	case !replied:
		return false
	case strings.HasPrefix(reply, "OOM "):
		return true
	case strings.Contains(reply, "Function not found"):
		s.load(key)
		return true
	case isForbidden(reply, "fcall"):
		s.functions.refused.Store(&err)
		return true
	}
	return false
}

// isForbidden reports whether Redis, or a proxy before it, does not know a command, or this user may not
// use it.
func isForbidden(reply, command string) bool {
	reply = strings.ToLower(reply)
	if kind, rest, _ := strings.Cut(reply, " "); kind == "noperm" {
		return strings.Contains(rest, command)
	}
	// Only at the beginning: an error of Lua that runs, which may have charged, can contain anything.
	reply = strings.TrimPrefix(reply, "err ")
	return strings.HasPrefix(reply, "unknown command") || strings.HasPrefix(reply, "unsupported command")
}

const (
	// loadWithin is when stores that miss the library begin to load it: at some time, so that not all of
	// them do.
	loadWithin = 20 * time.Millisecond

	// loadAgain is after how long a store tries again if Redis could not load it.
	loadAgain = time.Second
)

// load loads the library on the server of a key, in the background. Until it is there, scripts are run.
func (s *Store) load(key string) {
	if !s.functions.loading.CompareAndSwap(false, true) {
		return
	}
	begun := s.aside(func() {
		defer s.functions.loading.Store(false)
		s.pause(rand.N(loadWithin))
		switch err := s.loadOnce(key); {
		case err == nil:
		case isFinal(err):
			s.functions.refused.Store(&err)
		default:
			s.pause(loadAgain)
		}
	})
	if !begun {
		s.functions.loading.Store(false)
	}
}

// pause ends early if the store is closed.
func (s *Store) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.closing:
	}
}

// loadOnce loads the library, unless another store has done it.
func (s *Store) loadOnce(key string) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.link.patient)
	defer cancel()
	if _, err := s.link.client.Eval(ctx, fcall, s.library.function(nothing), []string{key}, ""); err == nil {
		return nil
	}
	err := s.functions.loader.Load(ctx, key, s.library.functions)
	if reply, _ := replyOf(err); strings.Contains(reply, "already exists") {
		return nil
	}
	return err
}

// isFinal reports whether Redis will not load the library later either: it has said no, and not with a
// code for what passes, such as LOADING.
func isFinal(err error) bool {
	reply, replied := replyOf(err)
	kind, _, _ := strings.Cut(reply, " ")
	return replied && (kind == "ERR" || kind == "NOPERM" || kind != strings.ToUpper(kind)) // which some clients leave out
}
