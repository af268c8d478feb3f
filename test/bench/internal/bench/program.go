package bench

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/build"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	_ "github.com/weirhq/weir/rule/rulefile"
	"github.com/weirhq/weir/store/redis"
)

// OpenRedis opens a store on a Redis.
func OpenRedis(t testing.TB, addr string) *redis.Store { return OpenURL(t, "redis://"+addr) }

// OpenURL opens a store with a timeout that a busy machine does not reach.
func OpenURL(t testing.TB, url string) *redis.Store {
	s := testkit.Must(redis.Open(url + "?timeout=1m"))(t)
	t.Cleanup(s.Close)
	return s
}

// NewEngine returns an engine with the rules of a document.
func NewEngine(t testing.TB, store weir.Store, document string) *engine.Engine {
	e := testkit.Must(engine.New(engine.Options{Store: store}))(t)
	t.Cleanup(e.Close)
	testkit.OK(t, e.Load("bench", []byte(document)))
	return e
}

// Checks is what a caller does who has an engine check requests: each is made of the first, and
// as many rules as there are to be results must allow it.
func Checks(e *engine.Engine, results int, first rule.Request, next func(req *rule.Request, n int)) func(n int) error {
	req, v := first, engine.Verdict{}
	return func(n int) error {
		next(&req, n)
		err := e.Check(context.Background(), &req, &v)
		if err == nil && (!v.Allowed || len(v.Results) != results || v.Degraded != nil) {
			err = fmt.Errorf("%d results, degraded: %v, allowed: %t", len(v.Results), v.Degraded, v.Allowed)
		}
		return err
	}
}

// Build builds weir as releases are built, and returns where it is.
func Build(t testing.TB) string {
	root := testkit.Must(exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/weirhq/weir").Output())(t)
	path := filepath.Join(t.TempDir(), "weir")
	build := build.Weir(strings.TrimSpace(string(root)), build.Host, path)
	build.Stderr = os.Stderr
	testkit.OK(t, build.Run())
	return path
}

// Process is a program that listens.
type Process struct {
	Address string
	PID     int
	cmd     *exec.Cmd
}

// HTTP, GRPC and Redis are what weir says before an address.
const (
	HTTP  = "weir listens on http://"
	GRPC  = "weir listens for gRPC on "
	Redis = "weir listens for Redis clients on "
)

// ServeWeir runs the program in a directory, whose rules.yaml it uses, until it says where it listens.
func ServeWeir(t testing.TB, path, dir, says string, flags ...string) *Process {
	cmd := exec.Command(path, append([]string{"serve", "--log-level", "error"}, flags...)...)
	cmd.Dir = dir
	return Listen(t, cmd, says)
}

// Listen starts a program, and waits until it says where it listens.
func Listen(t testing.TB, cmd *exec.Cmd, says string) *Process {
	cmd.Stderr = os.Stderr
	out := testkit.Must(cmd.StdoutPipe())(t)
	testkit.OK(t, cmd.Start())
	p := &Process{PID: cmd.Process.Pid, cmd: cmd}
	t.Cleanup(p.Stop)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if rest, found := strings.CutPrefix(lines.Text(), says); found {
			p.Address, _, _ = strings.Cut(rest, " ")
			return p
		}
	}
	t.Fatalf("%s did not say where it listens", cmd.Path)
	return nil
}

// Stop ends it. It may have ended already.
func (p *Process) Stop() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Signal(os.Interrupt)
		_ = p.cmd.Wait() // it ends without an error, or has said which
	}
}
