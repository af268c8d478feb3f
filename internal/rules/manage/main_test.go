package manage

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/weirhq/weir/internal/rules/repo"
	filerepo "github.com/weirhq/weir/internal/rules/repo/file"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	_ "github.com/weirhq/weir/rule/rulefile"
)

func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }

const testRules = `rules:
  # logins
  - {id: login, match: {path: /login}, key: ip, limit: 5/1m, on_failure: local}
  - {id: api, key: user, limit: 100/1m}
`

// openRules puts a document into a file, as version 2.
func openRules(t testing.TB) *filerepo.Repository {
	t.Helper()
	repository, err := filerepo.Open(filepath.Join(t.TempDir(), "rules.yaml"), filerepo.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	first, err := repository.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err = repository.Write(t.Context(), repo.Draft{Base: first.Number, Source: []byte(testRules)}); err != nil {
		t.Fatal(err)
	}
	return repository
}

// racing is a repository in which somebody else is faster, so many times.
type racing struct {
	repo.Repository
	lost   int
	writes int
}

func (r *racing) Write(ctx context.Context, d repo.Draft) (repo.Version, error) {
	r.writes++
	if r.lost > 0 {
		r.lost--
		now, err := r.Repository.Current(ctx)
		if err != nil {
			return now, err
		}
		source := append(append([]byte{}, now.Source...), "# somebody else\n"...)
		if _, err := r.Repository.Write(ctx, repo.Draft{Base: now.Number, Source: source}); err != nil {
			return now, err
		}
	}
	return r.Repository.Write(ctx, d)
}

func mustRule(t testing.TB, source string) *rule.Rule {
	t.Helper()
	r, err := ParseRule([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// is fails unless the error is of this type, and returns it.
func is[E error](t testing.TB, err error) (e E) {
	t.Helper()
	if !errors.As(err, &e) {
		t.Fatalf("the error is %v, want a %T", err, e)
	}
	return e
}
