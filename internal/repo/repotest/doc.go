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
