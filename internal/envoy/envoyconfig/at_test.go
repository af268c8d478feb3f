package envoyconfig

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/watch"
)

// A directory that does not exist, is empty or has mistakes has no configuration, and
// gets one when it is corrected. Install is called before it is in force.
func TestStartWithoutFiles(t *testing.T) {
	for name, o := range map[string]Options{
		"told": {}, "poll": {watch: watch.Options{PollOnly: true, Poll: 10 * time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "config")
			var d *Dir
			var early bool
			o.Install = func(*Config) { early = d.Config() == nil }
			d, err := At(dir, o)
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Reload(); err == nil || d.Config() != nil {
				t.Fatalf("%v, %v", d.Config(), err)
			}
			news := followed(t, d)
			expectTrouble(t, news, 0, "no such file")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			expectTrouble(t, news, 0, "there is no *.yaml file")
			save(t, filepath.Join(dir, "d.yaml"), "domain: [")
			expectTrouble(t, news, 0, "d.yaml")
			save(t, filepath.Join(dir, "d.yaml"), file(3))
			expect(t, news, 0, 3)
			if !early {
				t.Error("Install was not called before the configuration was in force")
			}
		})
	}
}
