package peer

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// Version is the one that weir is compared with: the newest that is published as a
// module.
const Version = "v1.4.1-0.20260122083618-3fb702589d36"

const module = "github.com/envoyproxy/ratelimit"

// Programs are the paths of the service and its client.
type Programs struct{ Service, Client string }

// Build builds both into a directory, with the dependencies that their own module
// names. Flags and variables are for go install.
func Build(ctx context.Context, dir string, flags, environment []string) (Programs, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Programs{}, fmt.Errorf("peer: %w", err)
	}
	programs := []string{module + "/src/service_cmd@" + Version, module + "/src/client_cmd@" + Version}
	c := exec.CommandContext(ctx, "go", slices.Concat([]string{"install"}, flags, programs)...)
	c.Dir = dir // not in a module of ours
	c.Env = slices.Concat(os.Environ(), []string{"GOBIN=" + dir, "GOFLAGS=-buildvcs=false"}, environment)
	if out, err := c.CombinedOutput(); err != nil {
		return Programs{}, fmt.Errorf("peer: %s cannot be built: %w\n%s", module, err, out)
	}
	return Programs{Service: filepath.Join(dir, "service_cmd"), Client: filepath.Join(dir, "client_cmd")}, nil
}
