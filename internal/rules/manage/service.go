package manage

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/clients"
	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/trust"
	"github.com/weirhq/weir/rule"
)

// Service holds the options that the HTTP and gRPC servers of one process share.
type Service struct {
	// Engine decides requests. Required.
	Engine *engine.Engine

	// Rules stores the document of rules. Required, unless Editor is set.
	Rules repo.Repository

	// Apply puts a version that was just written into force before the writer gets the
	// answer, so that a check after a change uses the changed rules. It is called in the
	// order of the versions; the repository's Watch may report them again. Default none:
	// versions come into force only through Watch, a moment later.
	Apply func(repo.Version) error

	// Editor changes the rules. Servers of one process share one, so that their versions
	// come into force in order. Default a new Editor with Rules and Apply.
	Editor *Editor

	// RuleOptions are the options with which the rules in force were compiled. Drafts are
	// compiled with the same options.
	RuleOptions rule.Options

	// Overrides manages the temporary overrides. Default none.
	Overrides *Overrides

	// Clients is the directory of clients. Default none: calls about it are rejected.
	Clients *clients.Registry

	// Counters counts for applications. Default none: calls about counters are rejected.
	Counters counter.Store

	// Guard checks tokens, and limits management calls and wrong tokens. Servers of one
	// process share one. Default a new Guard with Limits.
	Guard  *Guard
	Limits GuardOptions

	// Tokens returns the tokens for management. It is called for every call, so that the
	// list can be replaced. If it is nil or returns nil, no token is required; use
	// this only on the loopback address.
	Tokens func() *trust.List

	// Checks decides who may check. Servers of one process share one. Default everybody.
	Checks *Checks

	// Ready returns nil if the server is ready for requests, otherwise the reason why it is
	// not. Default always ready.
	Ready func(context.Context) error

	// Logger receives every management call, and errors. Default slog.Default().
	Logger *slog.Logger
}

// Complete checks the required options and sets the defaults. Errors begin with the name of
// the server's package.
func (s *Service) Complete(server string) (err error) {
	switch {
	case s.Engine == nil:
		return fmt.Errorf("%s: Options.Engine is required; create one with engine.New", server)
	case s.Rules == nil && s.Editor == nil:
		return fmt.Errorf("%s: Options.Rules is required; open a document with filerepo.Open", server)
	}
	if s.Editor == nil {
		s.Editor = NewEditor(s.Rules, s.Apply)
	}
	if s.Guard == nil {
		if s.Guard, err = NewGuard(s.Limits); err != nil {
			return fmt.Errorf("%s: Options.Limits: %w", server, err)
		}
	}
	if s.Tokens == nil {
		s.Tokens = func() *trust.List { return nil }
	}
	if s.Ready == nil {
		s.Ready = func(context.Context) error { return nil }
	}
	s.Logger = cmp.Or(s.Logger, slog.Default())
	if s.Checks == nil {
		s.Checks = NewChecks(nil, s.Guard, s.Logger)
	}
	return nil
}
