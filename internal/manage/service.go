package manage

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/bearer"
	"github.com/weirhq/weir/internal/repo"
	"github.com/weirhq/weir/rule"
)

// Service is what the servers of one process have in common, whatever protocol they
// speak.
type Service struct {
	// Engine decides requests. Required.
	Engine *engine.Engine

	// Rules is where the document of rules is kept. It is needed, unless there is an
	// Editor.
	Rules repo.Repository

	// Apply puts a version that was just written into force before the writer gets the
	// answer, so that a check after a change uses the changed rules. Versions come in
	// order; the repository's Watch may report them again. Default none: versions come
	// only from Watch, a moment later.
	Apply func(repo.Version) error

	// Editor changes the rules. Servers of one process share one, so that their versions
	// come into force in order. Default one of Rules and Apply.
	Editor *Editor

	// RuleOptions are those with which the rules in force were compiled, so that drafts
	// are tried with the same.
	RuleOptions rule.Options

	// Overrides manages the temporary overrides. Default none.
	Overrides *Overrides

	// Guard keeps out who calls the management too often, or tries tokens. Servers of
	// one process share one. Default one with the Limits.
	Guard  *Guard
	Limits GuardOptions

	// Tokens returns the tokens for management. It is called for every call, so that the
	// list can be replaced. If it is nil or returns nil, no token is required, which is
	// for servers on the loopback address.
	Tokens func() *bearer.List

	// Ready is why no requests should come yet; nil if they should. Default always.
	Ready func(context.Context) error

	// Logger is told of every call of the management, and of trouble. Default
	// slog.Default().
	Logger *slog.Logger
}

// Complete makes what was left out, for the server of a package.
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
		s.Tokens = func() *bearer.List { return nil }
	}
	if s.Ready == nil {
		s.Ready = func(context.Context) error { return nil }
	}
	s.Logger = cmp.Or(s.Logger, slog.Default())
	return nil
}
