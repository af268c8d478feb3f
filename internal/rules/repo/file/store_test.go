package file

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/rules/repo/repotest"
	"github.com/weirhq/weir/internal/testkit"
)

func openStore(t *testing.T, dir string) *Store {
	t.Helper()
	return testkit.Must(OpenStore(dir, repo.StoreOptions{Name: "overrides", Most: repotest.Most}))(t)
}

func TestStore(t *testing.T) {
	repotest.RunStore(t, func(t *testing.T) func() repo.Store {
		dir := filepath.Join(t.TempDir(), "rules.yaml.history")
		return func() repo.Store { return openStore(t, dir) }
	})
}

// Other users must not be able to read the document, and what a crash has left behind
// goes with the next write.
func TestStoreFiles(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "1.yaml.123.tmp")
	for _, name := range []string{other, filepath.Join(dir, "overrides.json.123.tmp")} {
		testkit.OK(t, os.WriteFile(name, []byte("half"), 0o600))
	}
	p := openStore(t, dir)
	testkit.OK(t, p.Write(t.Context(), "", []byte("x")))
	if info := testkit.Must(os.Stat(p.path))(t); info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v", info.Mode())
	}
	if files := testkit.Must(filepath.Glob(dir + "/*.tmp"))(t); len(files) != 1 || files[0] != other {
		t.Errorf("there are still %v", files)
	}
}

// A directory that cannot be written has no overrides, and says so when one is added.
func TestStoreReadOnly(t *testing.T) {
	dir := t.TempDir()
	testkit.OK(t, os.Mkdir(filepath.Join(dir, "overrides.lock"), 0o700)) // in the place of the lock, which stops root, too
	p := openStore(t, dir)
	if _, _, err := p.Read(t.Context(), repo.Unknown); err != nil {
		t.Error(err)
	}
	if err := p.Write(t.Context(), "", []byte("x")); err == nil {
		t.Error("it was written")
	}
}
