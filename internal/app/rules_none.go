package app

import (
	"context"
	"errors"
	"os"

	"github.com/weirhq/weir/internal/repo"
)

// NoRules, as Options.Rules, keeps none: weir reads and makes no file.
const NoRules = "none"

// usualRules is where the rules are if nobody says so. A service for Envoy alone has its
// limits elsewhere, and does without the file; but one that is there, or was, holds.
func (o *Options) usualRules() string {
	if o.Envoy.Config != "" && isMissing(DefaultRules) && isMissing(DefaultRules+".history") {
		return NoRules
	}
	return DefaultRules
}

func isMissing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, os.ErrNotExist)
}

var errNoRules = errors.New("app: weir keeps no rules; name a file with --rules")

// noRules is a repository without rules, which never change.
type noRules struct{}

func (noRules) Current(context.Context) (repo.Version, error) {
	return repo.Version{Source: []byte("rules: []\n")}, nil
}

func (noRules) Write(context.Context, repo.Draft) (repo.Version, error) {
	return repo.Version{}, errNoRules
}

func (noRules) History(context.Context) ([]repo.Version, error) { return nil, nil }

func (noRules) Find(context.Context, int64) (repo.Version, error) {
	return repo.Version{}, repo.ErrNoVersion
}

func (noRules) Watch(ctx context.Context, _ func(repo.Version, error)) error {
	<-ctx.Done()
	return ctx.Err()
}
