// Package repotest is the suite that every repository of rules must pass, of this
// project or of anybody else:
//
//	func TestSuite(t *testing.T) {
//		repotest.Run(t, func(t *testing.T) repotest.Place {
//			dir := t.TempDir()
//			return repotest.Place{
//				Open:  func() repo.Repository { return myrepo.Open(dir) },
//				Force: func(source []byte) { myrepo.Overwrite(dir, source) },
//			}
//		})
//	}
//
// Whether a repository leaves goroutines behind is for its TestMain to find out.
package repotest

import (
	"fmt"
	"testing"

	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/testkit"
)

// Place is where a document is kept, with nothing or a document without rules in it.
type Place struct {
	// Open returns a repository on the place. Each is independent of the others, as
	// if it were another process's.
	Open func() repo.Repository

	// Force puts a document there behind the back of all repositories, as somebody
	// would who edits the file or the key. To repositories it is a new version.
	Force func(source []byte)
}

// Run runs the whole suite. The function makes a new place each time.
func Run(t *testing.T, place func(t *testing.T) Place) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Place)
	}{
		{"Write", testWrite},
		{"Reopen", testReopen},
		{"Conflict", testConflict},
		{"History", testHistory},
		{"HistoryIsBounded", testHistoryIsBounded},
		{"Rollback", testRollback},
		{"Invalid", testInvalid},
		{"Bounds", testBounds},
		{"Large", testLarge},
		{"Cancelled", testCancelled},
		{"Writers", testWriters},
		{"Watch", testWatch},
		{"WatchLast", testWatchLast},
		{"Force", testForce},
		{"ForceUnusable", testForceUnusable},
		{"NeverInstalled", testNeverInstalled},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, place(t)) })
	}
}

// source is a document that can be told from others by a number.
func source(n int) []byte {
	return fmt.Appendf(nil, "# document %d\nrules:\n  - id: login\n    key: ip\n    limit: %d/1m\n", n, n+1)
}

// unusable are documents that must not be used, each for another reason.
var unusable = map[string]string{
	"no YAML":        "rules: [",
	"half a rule":    "rules:\n  - id: login\n    key: ip\n",
	"unknown field":  "rulez: []\n",
	"duplicate":      "rules:\n  - {id: a, key: ip, limit: 5/1m}\n  - {id: a, key: user, limit: 6/1m}\n",
	"cannot be kept": "rules:\n  - {id: a, key: ip, algorithm: sliding_log, limit: 9007199254740993/1m}\n",
	"not UTF-8":      "# \xff\nrules: []\n",
}

func current(t *testing.T, r repo.Repository) repo.Version {
	t.Helper()
	return testkit.Must(r.Current(t.Context()))(t)
}

// write writes upon what is current.
func write(t *testing.T, r repo.Repository, source []byte) repo.Version {
	t.Helper()
	return testkit.Must(r.Write(t.Context(), repo.Draft{Base: current(t, r).Number, Author: "test", Source: source}))(t)
}

// check compares everything but the time.
func check(t *testing.T, what string, got repo.Version, number int64, source []byte) {
	t.Helper()
	if got.Number != number || string(got.Source) != string(source) {
		t.Errorf("%s: version %d with\n%s\nwant %d with\n%s", what, got.Number, got.Source, number, source)
	}
}
