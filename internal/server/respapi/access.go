package respapi

import (
	"errors"
	"fmt"
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

// authenticate remembers a token, if it is one. Where no token is asked for, any is welcome, and none
// is kept: it may be as long as a command.
func (w *work) authenticate(token string) error {
	tokens := w.server.options.Tokens()
	if tokens == nil {
		return nil
	}
	if list := w.server.options.Checks.Tokens(); list != nil {
		k, err := w.server.options.Checks.Identify(w.server.ctx, w.client, credentialsOf(token))
		if err == nil {
			w.login = login{token: token, checks: k, checkedBy: list}
		}
		return err
	}
	caller, err := w.guard("AUTH", tokens, token, 0, true)
	if err == nil {
		w.login = login{token: token, list: tokens, holder: caller.Holder}
	}
	return err
}

// guard lets a client send a command that needs a right. It logs that the client may not, unless
// no token was sent, or too many: that costs less to say than to log.
func (w *work) guard(name string, tokens *trust.List, token string, needs trust.Rights, uncounted bool) (manage.Caller, error) {
	visit := manage.Visit{Client: w.client, Credentials: credentialsOf(token), Needs: needs, Uncounted: uncounted}
	caller, err := w.server.options.Guard.Allow(w.server.ctx, tokens, visit)
	right, lacks := errors.AsType[*manage.RightError](err)
	switch {
	case lacks:
		w.report(name, false, right.Holder, 0)
	case errors.Is(err, manage.ErrWrongToken):
		w.report(name, false, "", 0)
	}
	return caller, err
}

func credentialsOf(token string) (own manage.Credentials) {
	if token != "" {
		own.Token = []string{token}
	}
	return own
}

// checker is who checks, if they may. As in mayUse, the token is looked up again after every reload.
func (w *work) checker() (*manage.Checker, error) {
	checks, l := w.server.options.Checks, &w.login
	list := checks.Tokens()
	switch {
	case list == nil:
		l.checks = checks.Anybody()
		l.checks.Client = w.client
	case l.token == "" || l.checkedBy != list:
		k, err := checks.Identify(w.server.ctx, w.client, credentialsOf(l.token))
		if err != nil {
			return nil, err
		}
		l.checks, l.checkedBy = k, list
	}
	return &l.checks, nil
}

// mayUse is an error unless the client may count with what it names itself, which it may do as
// often as it likes. The list of tokens is another one after every reload of the file, and the
// token is looked up again then.
func (w *work) mayUse() error {
	tokens := w.server.options.Tokens()
	l := &w.login
	if tokens == nil || l.token != "" && l.list == tokens && l.holder.Rights.Has(trust.Use) {
		return nil
	}
	caller, err := w.guard("CL.THROTTLE", tokens, l.token, trust.Use, true)
	if err == nil {
		l.list, l.holder = tokens, caller.Holder
	}
	return err
}

// managed answers a command of the management, if the client may send it.
func (w *work) managed(name string, needs trust.Rights, do func() error) error {
	start := time.Now()
	caller, err := w.guard(name, w.server.options.Tokens(), w.login.token, needs, false)
	if err != nil {
		return err
	}
	err = do()
	w.report(name, err == nil, caller.Name, time.Since(start))
	return err
}

// calls is how the commands name what a remedy needs.
var calls = fault.Calls{Always: "WEIR.CHECK and charge always"}

// redisError is an error in the words of Redis or redis-cell. Its first word is its code.
type redisError struct{ code, text string }

func (f *redisError) Error() string { return f.code + " " + f.text }

// fails returns an error with the code that Redis has for most.
func fails(format string, args ...any) error { return &redisError{"ERR", fmt.Sprintf(format, args...)} }

// reject answers with an error, instead of what may have been written already.
func (w *work) reject(err error) {
	w.out, w.open = w.out[:w.answered], w.open[:0]
	if own, ok := errors.AsType[*redisError](err); ok {
		w.fail(own.code, own.text)
		return
	}
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
