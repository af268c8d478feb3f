package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/trust"
)

// lookEvery is how often weir checks the files of tokens and certificates for changes,
// so that a renewed certificate is used without a signal.
const lookEvery = time.Second

// openSecrets reads tokens and certificates, and goes on looking at them.
func (a *App) openSecrets(_, background context.Context) error {
	list, err := a.options.tokens()
	if err != nil {
		return fmt.Errorf("--admin-token-file: %w", err)
	}
	if a.options.Profiles && !list.Grants(trust.Admin) {
		return errors.New("--pprof requires a token with the right admin, because profiles slow weir down and show how it works; add a line such as \"operator admin …\" to --admin-token-file, or set WEIR_ADMIN_TOKEN (openssl rand -hex 32 makes a token)")
	}
	a.tokens.Store(list)
	if a.guard, err = manage.NewGuard(manage.GuardOptions{}); err != nil {
		return err
	}
	var closed func() *trust.List
	switch {
	case a.options.hasTokens() && !a.options.OpenChecks:
		closed = a.tokens.Load
	case a.options.OpenChecks:
		a.options.Logger.Warn("checks require no token, because of --open-checks; who can reach an address of weir can use up the limits of others")
	}
	a.checks = manage.NewChecks(closed, a.guard, a.options.Logger)
	if file := a.options.TokenFile; file != "" && trust.Exposed(file) {
		a.options.Logger.Warn("other users of this machine can read the token file; run chmod 600 on it", "file", file)
	}
	if err := a.openCerts("--tls-cert", a.options.TLS); err != nil {
		return err
	}
	if a.options.Gateway != nil {
		if err := a.openCerts("--listen-tls-cert", a.options.Gateway.TLS); err != nil {
			return err
		}
	}
	if a.options.TokenFile == "" && len(a.certs) == 0 {
		return nil
	}
	a.background.Go(func() {
		var told string
		for clock.Sleep(background, clock.UntilWhole(time.Now(), lookEvery)) == nil {
			trouble := ""
			if err := a.reloadSecrets(); err != nil {
				trouble = err.Error()
			}
			if trouble != "" && trouble != told {
				a.options.Logger.Error("could not reload tokens or certificates; the previous ones stay in use", "error", trouble)
			}
			told = trouble
		}
	})
	return nil
}

func (a *App) openCerts(flag string, o trust.Options) error {
	if o.IsZero() {
		return nil
	}
	c, err := trust.OpenCerts(o)
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	a.certs[flag] = c
	return nil
}

// reloadSecrets reads tokens and certificates again.
func (a *App) reloadSecrets() error {
	var wrong []error
	if list, err := a.options.tokens(); err != nil {
		wrong = append(wrong, fmt.Errorf("--admin-token-file: %w", err))
	} else {
		a.tokens.Store(list)
	}
	for _, flag := range slices.Sorted(maps.Keys(a.certs)) {
		changed, err := a.certs[flag].Reload()
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", flag, err))
		}
		if changed {
			a.options.Logger.Info("reloaded the certificate", "flag", flag)
		}
	}
	return errors.Join(wrong...)
}
