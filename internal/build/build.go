// Package build tells what this program was built from, as far as the go command recorded it, and
// builds weir from a checkout as releases are built: static, stripped, small, and the same bytes from
// the same source.
package build

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"sync"
)

// Info describes a build.
type Info struct {
	Version  string `json:"version"`            // of the main module: a tag, a pseudo-version, or (devel)
	Commit   string `json:"commit,omitempty"`   // "" if it was not built from a checkout
	Time     string `json:"time,omitempty"`     // of the commit
	Modified bool   `json:"modified,omitempty"` // the checkout had changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Read returns the build of this program.
var Read = sync.OnceValue(func() Info {
	recorded, ok := debug.ReadBuildInfo()
	if !ok {
		recorded = &debug.BuildInfo{}
	}
	return describe(recorded)
})

func describe(recorded *debug.BuildInfo) Info {
	b := Info{
		Version: cmp.Or(recorded.Main.Version, "(unknown)"),
		Go:      runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	for _, s := range recorded.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}
