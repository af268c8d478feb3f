package sdk

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/weirhq/weir/internal/build"
)

// weir is the binary under test, and where one of it listens with the rules of rules.yaml.
var weir struct{ binary, url, grpc string }

func TestMain(m *testing.M) {
	code, err := buildAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// buildAndRun builds weir and starts it, once for all tests.
func buildAndRun(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "weir-sdk")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	weir.binary = filepath.Join(dir, "weir")
	if out, err := build.Weir("../..", build.Host, weir.binary, "-buildvcs=false").CombinedOutput(); err != nil {
		return 0, fmt.Errorf("go build: %w\n%s", err, out)
	}
	rules, err := os.ReadFile("rules.yaml")
	if err != nil {
		return 0, err
	}
	// A copy, because weir keeps the history of its rules beside them.
	if err := os.WriteFile(filepath.Join(dir, "rules.yaml"), rules, 0o600); err != nil {
		return 0, err
	}
	cmd := exec.Command(weir.binary, "serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0")
	var log bytes.Buffer
	cmd.Dir, cmd.Stderr = dir, &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
		if code != 0 || err != nil {
			os.Stderr.Write(log.Bytes())
		}
	}()
	lines := bufio.NewReader(out)
	for _, place := range []*string{&weir.url, &weir.grpc} {
		line, err := lines.ReadString('\n')
		if err != nil {
			return 0, fmt.Errorf("weir ended before it listened: %w", err)
		}
		*place = regexp.MustCompile(`on (\S+)`).FindStringSubmatch(line)[1]
	}
	return m.Run(), nil
}
