// Package build tells what this program was built from, as far as the go command recorded it, and
// builds weir from a checkout as releases are built: static, stripped, small, and the same bytes from
// the same source.
package build

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
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

// Flags are what go build is given, wherever the source comes from.
//
// grpcnotrace leaves out the debug pages of gRPC. Their templates may call any method by its name,
// so the linker would keep every exported method of every type: 44 MB instead of 28.
//
// The linker leaves out what debuggers read (-w), so the compiler need not write it, which saves a
// seventh of its time.
var Flags = []string{"-trimpath", "-tags=grpcnotrace", "-gcflags=all=-dwarf=false", "-ldflags=-s -w"}

// profile tells the compiler where weir spends its time. It is not called default.pgo, which would
// have everything compiled twice, with it and without it, wherever all packages are built.
const profile = "cmd/weir/weir.pgo"

// Host is the platform of this machine.
const Host = runtime.GOOS + "/" + runtime.GOARCH

// FlagsOf are the flags for the checkout in dir: Flags, and its profile. Programs that are built with
// these and the same Environment share what was compiled of the standard library.
func FlagsOf(dir string) []string {
	name, err := filepath.Abs(filepath.Join(dir, profile))
	if err == nil {
		_, err = os.Stat(name)
	}
	if err != nil { // older versions have none
		return Flags
	}
	return append(slices.Clone(Flags), "-pgo="+name)
}

// Weir returns the command that builds weir from the checkout in dir, for a platform such as
// linux/amd64, into the file out. Further flags go to go build.
func Weir(dir, platform, out string, flags ...string) *exec.Cmd {
	cmd := exec.Command("go", slices.Concat([]string{"build", "-o", out}, FlagsOf(dir), flags, []string{"./cmd/weir"})...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), Environment(platform)...)
	return cmd
}

// Environment lists the variables that the bytes depend on.
func Environment(platform string) []string {
	system, machine, _ := strings.Cut(platform, "/")
	return []string{
		"GOOS=" + system, "GOARCH=" + machine, "GOAMD64=v1", "GOARM64=v8.0",
		"CGO_ENABLED=0", "GOEXPERIMENT=", "GOFLAGS=", "GOWORK=off",
	}
}
