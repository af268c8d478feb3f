package respapi

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/weirhq/weir/internal/bearer"
	"github.com/weirhq/weir/internal/manage"
)

// login is who a client has said it is.
type login struct {
	token  string
	list   *bearer.List // in which the holder was found
	holder bearer.Holder
}

// authenticate remembers a token, if it is one, and reports whether it is. Otherwise it
// has answered. Where no token is asked for, any is welcome, and none is kept: it may be as
// long as a command.
func (w *work) authenticate(token string) bool {
	tokens := w.server.options.Tokens()
	if tokens == nil {
		return true
	}
	caller, err := w.guard(tokens, token, bearer.Read, true)
	if err != nil {
		w.turnAway(err, "AUTH")
		return false
	}
	w.login = login{token: token, list: tokens, holder: caller.Holder}
	return true
}

func (w *work) guard(tokens *bearer.List, token string, needs bearer.Scope, uncounted bool) (manage.Caller, error) {
	visit := manage.Visit{Client: w.client, Needs: needs, Uncounted: uncounted}
	if token != "" {
		visit.Credentials.Authorization = []string{"Bearer " + token}
	}
	return w.server.options.Guard.Allow(w.server.ctx, tokens, visit)
}

// mayUse reports whether the client may count with what it names itself, which it may do as
// often as it likes; otherwise it has answered. The list of tokens is another one after
// every reload of the file, and the token is looked up again then.
func (w *work) mayUse() bool {
	tokens := w.server.options.Tokens()
	l := &w.login
	if tokens == nil || l.token != "" && l.list == tokens && l.holder.Scope >= bearer.Use {
		return true
	}
	caller, err := w.guard(tokens, l.token, bearer.Use, true)
	if err != nil {
		w.turnAway(err, "CL.THROTTLE")
		return false
	}
	l.list, l.holder = tokens, caller.Holder
	return true
}

// managed answers a command of the management, if the client may send it.
func (w *work) managed(name string, needs bearer.Scope, do func()) {
	start := time.Now()
	caller, err := w.guard(w.server.options.Tokens(), w.login.token, needs, false)
	if err != nil {
		w.turnAway(err, name)
		return
	}
	do()
	w.report(name, !w.failed, caller.Name, time.Since(start))
}

// turnAway says why the guard does not allow a command. That one came too often costs less
// to say than to log.
func (w *work) turnAway(err error, name string) {
	var often *manage.TooOftenError
	var scope *manage.ScopeError
	holder := ""
	switch {
	case errors.As(err, &often):
		w.fail("TOO_MANY_CALLS", fmt.Sprintf("%s.", often.Verdict.Speaker().Rule.Deny.Message))
		return
	case errors.Is(err, manage.ErrNoToken):
		w.fail("NOAUTH", "Authentication required.")
		return
	case errors.Is(err, manage.ErrWrongToken):
		w.fail("WRONGPASS", "The server does not know this token; use one from its token file.")
	case errors.As(err, &scope):
		holder = scope.Holder
		w.fail("NOPERM", fmt.Sprintf("The token of %s has the scope %s; use one with the scope %s.", scope.Holder, scope.Has, scope.Needs))
	default:
		w.busy()
		return
	}
	w.report(name, false, holder, 0)
}

// report tells the log. Nothing in it was chosen by the client.
func (w *work) report(name string, ok bool, holder string, took time.Duration) {
	level, status := slog.LevelInfo, http.StatusText(http.StatusOK)
	if !ok {
		level, status = slog.LevelWarn, "error"
	}
	w.server.options.Logger.LogAttrs(w.server.ctx, level, "management call",
		slog.String("method", name), slog.String("code", status), slog.String("holder", holder),
		slog.String("client", w.client.String()), slog.Duration("took", took))
}
