// Package compile builds weir from a checkout as releases are built: static, stripped, small,
// and the same bytes from the same source. Tests use it, so that they test what is shipped, and
// everything is compiled once.
package compile

import (
	"os/exec"
	"runtime"
	"strings"
)

// Flags are what go build is given.
//
// grpcnotrace leaves out the debug pages of gRPC. Their templates may call any method by its name,
// so the linker would keep every exported method of every type: 44 MB instead of 28.
//
// The profile is not called default.pgo, which would have everything compiled twice, with it and
// without it, wherever all packages are built.
var Flags = []string{"-trimpath", "-pgo=cmd/weir/weir.pgo", "-tags", "grpcnotrace", "-ldflags", "-s -w"}

// Host is the platform of this machine.
const Host = runtime.GOOS + "/" + runtime.GOARCH

// Weir returns the command that builds weir from the checkout in dir, for a platform such as
// linux/amd64, into the file out. Further flags go to go build.
func Weir(dir, platform, out string, flags ...string) *exec.Cmd {
	cmd := exec.Command("go", append(append([]string{"build", "-o", out}, Flags...), append(flags, "./cmd/weir")...)...)
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
