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

	checks    manage.Checker
	checkedBy *bearer.List // in which that was found
}

// authenticate remembers a token, if it is one, and reports whether it is. Otherwise it
// has answered. Where no token is asked for, any is welcome, and none is kept: it may be as
// long as a command.
func (w *work) authenticate(token string) bool {
	tokens := w.server.options.Tokens()
	if tokens == nil {
		return true
	}
	if list := w.server.options.Checks.Tokens(); list != nil {
		k, err := w.server.options.Checks.Identify(w.server.ctx, w.client, credentialsOf(token))
		if err != nil {
			w.deny(err)
			return false
		}
		w.login = login{token: token, checks: k, checkedBy: list}
		return true
	}
	caller, err := w.guard(tokens, token, 0, true)
	if err != nil {
		w.turnAway(err, "AUTH")
		return false
	}
	w.login = login{token: token, list: tokens, holder: caller.Holder}
	return true
}

func (w *work) guard(tokens *bearer.List, token string, needs bearer.Rights, uncounted bool) (manage.Caller, error) {
	visit := manage.Visit{Client: w.client, Credentials: credentialsOf(token), Needs: needs, Uncounted: uncounted}
	return w.server.options.Guard.Allow(w.server.ctx, tokens, visit)
}

func credentialsOf(token string) (own manage.Credentials) {
	if token != "" {
		own.Token = []string{token}
	}
	return own
}

// checker is who checks; nil if it has answered that they may not. As in mayUse, the token is
// looked up again after every reload.
func (w *work) checker() *manage.Checker {
	checks, l := w.server.options.Checks, &w.login
	list := checks.Tokens()
	switch {
	case list == nil:
		l.checks = checks.Anybody()
		l.checks.Client = w.client
	case l.token == "" || l.checkedBy != list:
		k, err := checks.Identify(w.server.ctx, w.client, credentialsOf(l.token))
		if err != nil {
			w.deny(err)
			return nil
		}
		l.checks, l.checkedBy = k, list
	}
	return &l.checks
}

// mayUse reports whether the client may count with what it names itself, which it may do as
// often as it likes; otherwise it has answered. The list of tokens is another one after
// every reload of the file, and the token is looked up again then.
func (w *work) mayUse() bool {
	tokens := w.server.options.Tokens()
	l := &w.login
	if tokens == nil || l.token != "" && l.list == tokens && l.holder.Rights.Has(bearer.Use) {
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
func (w *work) managed(name string, needs bearer.Rights, do func()) {
	start := time.Now()
	caller, err := w.guard(w.server.options.Tokens(), w.login.token, needs, false)
	if err != nil {
		w.turnAway(err, name)
		return
	}
	do()
	w.report(name, !w.failed, caller.Name, time.Since(start))
}

// turnAway says why the guard does not allow a command, and logs it.
func (w *work) turnAway(err error, name string) {
	if holder, log := w.deny(err); log {
		w.report(name, false, holder, 0)
	}
}

// deny says why a command is not allowed, and returns whose token it was, and whether to log it:
// that one came too often costs less to say than to log.
func (w *work) deny(err error) (holder string, log bool) {
	var often *manage.TooOftenError
	var right *manage.RightError
	switch {
	case errors.As(err, &often):
		w.fail("TOO_MANY_CALLS", fmt.Sprintf("%s.", often.Verdict.Speaker().Rule.Deny.Message))
	case errors.Is(err, manage.ErrNoToken):
		w.fail("NOAUTH", "Authentication required.")
	case errors.Is(err, manage.ErrWrongToken):
		w.fail("WRONGPASS", "The server does not know this token; use one from its token file.")
		return "", true
	case errors.As(err, &right):
		w.fail("NOPERM", right.Detail())
		return right.Holder, true
	default:
		w.busy()
	}
	return "", false
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
