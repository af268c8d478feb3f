package respapi

import (
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/trust"
)

// login is who a client has said it is.
type login struct {
	token  string
	list   *trust.List // in which the holder was found
	holder trust.Holder

	checks    manage.Checker
	checkedBy *trust.List // in which that was found
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
			w.reject(err)
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

func (w *work) guard(tokens *trust.List, token string, needs trust.Rights, uncounted bool) (manage.Caller, error) {
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
			w.reject(err)
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
	if tokens == nil || l.token != "" && l.list == tokens && l.holder.Rights.Has(trust.Use) {
		return true
	}
	caller, err := w.guard(tokens, l.token, trust.Use, true)
	if err != nil {
		w.turnAway(err, "CL.THROTTLE")
		return false
	}
	l.list, l.holder = tokens, caller.Holder
	return true
}

// managed answers a command of the management, if the client may send it.
func (w *work) managed(name string, needs trust.Rights, do func()) {
	start := time.Now()
	caller, err := w.guard(w.server.options.Tokens(), w.login.token, needs, false)
	if err != nil {
		w.turnAway(err, name)
		return
	}
	do()
	w.report(name, !w.failed, caller.Name, time.Since(start))
}

// turnAway says why the guard does not allow a command, and logs it, unless no token was sent, or
// too many: that costs less to say than to log.
func (w *work) turnAway(err error, name string) {
	w.reject(err)
	right, lacks := errors.AsType[*manage.RightError](err)
	switch {
	case lacks:
		w.report(name, false, right.Holder, 0)
	case errors.Is(err, manage.ErrWrongToken):
		w.report(name, false, "", 0)
	}
}

// calls is how the commands name what a remedy needs.
var calls = fault.Calls{Always: "WEIR.CHECK and charge always"}

// reject answers with an error.
func (w *work) reject(err error) {
	if often, ok := errors.AsType[*manage.TooOftenError](err); ok {
		w.fail("TOO_MANY_CALLS", often.Verdict.Speaker().Rule.Deny.Message+".")
		return
	}
	f := calls.Of(err)
	switch {
	case f == nil: // the server ended before the command was answered
		f = fault.TimedOut("command")
	case f.Kind == fault.TokenRequired:
		f.Detail = "Authentication required." // which is what Redis says
	}
	w.fail(f.Kind.Word, f.Detail)
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
