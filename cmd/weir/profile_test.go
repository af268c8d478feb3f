//go:build measure

package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weirhq/weir/internal/build"
)

const profiledRules = `rules:
  - {id: everything, key: global, limit: 100000000/1s}
  - {id: api, match: {path: /api/**}, key: user, limit: 1000/1m, burst: 2000}
  - {id: login, match: {method: POST, path: /login}, key: ip, algorithm: sliding_log, limits: [5/1m, 20/1h]}
`

// TestProfile writes weir.pgo, by which the compiler knows where weir spends its time: it
// serves Redis clients, checks over HTTP, and a gateway, each for a few seconds.
func TestProfile(t *testing.T) {
	weir := filepath.Join(t.TempDir(), "weir")
	if out, err := build.Weir("../..", build.Host, weir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(rules, []byte(profiledRules), 0o600); err != nil {
		t.Fatal(err)
	}
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }))
	defer upstream.Close()

	serve := profiled(t, "weir listens for Redis", []string{"serve", "--rules", rules, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--resp", "127.0.0.1:0"}, func(at []string) [][]string {
		_, port, _ := strings.Cut(at[2], ":")
		redis := []string{"redis-benchmark", "-p", port, "-c", "50", "-P", "16", "-r", "10000", "-q", "-n"}
		return [][]string{
			append(redis, "6000000", "CL.THROTTLE", "user__rand_int__", "1000", "1000", "60"),
			append(redis, "3000000", "WEIR.CHECK", "user", "user__rand_int__", "path", "/api/x"),
			{weir, "bench", "--server", at[0], "--path", "/api/x", "--duration", "5s"},
		}
	})
	gateway := profiled(t, "weir gateway listens", []string{"gateway", "--rules", rules, "--http", "127.0.0.1:0", "--listen", "127.0.0.1:0", "--upstream", upstream.URL}, func(at []string) [][]string {
		return [][]string{{weir, "bench", "--url", at[len(at)-1] + "/api/{n}", "--duration", "4s"}}
	})
	both := filepath.Join(t.TempDir(), "both")
	if out, err := exec.Command("go", "tool", "pprof", "-proto", "-output", both, serve, gateway).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	packed, err := os.ReadFile(both)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("weir.pgo", withoutPaths(t, packed), 0o644); err != nil {
		t.Fatal(err)
	}
}

// withoutPaths shortens the names of files in a profile, which tell where this checkout is and
// which the compiler does not need.
func withoutPaths(t *testing.T, packed []byte) []byte {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	profile, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	const stringTable = 6
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	for len(profile) > 0 {
		number, kind, tag := protowire.ConsumeTag(profile)
		size := protowire.ConsumeFieldValue(number, kind, profile[max(0, tag):])
		if tag < 0 || size < 0 {
			t.Fatal("the profile cannot be read")
		}
		field := profile[:tag+size]
		if number == stringTable {
			text, _ := protowire.ConsumeBytes(field[tag:])
			if filepath.IsAbs(string(text)) {
				text = []byte(filepath.Base(string(text)))
			}
			field = protowire.AppendBytes(protowire.AppendTag(nil, number, kind), text)
		}
		writer.Write(field)
		profile = profile[tag+size:]
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// profiled runs weir in this process until it says the last of where it listens, and then
// programs that call it there. It returns the file with what took the time.
func profiled(t *testing.T, last string, args []string, programs func(at []string) [][]string) string {
	out, in := io.Pipe()
	ended := make(chan int, 1)
	go func() { ended <- run(args, strings.NewReader(""), in, os.Stderr) }()
	var at []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, rest, ok := strings.Cut(lines.Text(), " on "); ok {
			at = append(at, strings.Fields(rest)[0])
		}
		if strings.HasPrefix(lines.Text(), last) {
			break
		}
	}
	go io.Copy(io.Discard, out)
	file, err := os.Create(filepath.Join(t.TempDir(), args[0]+".pprof"))
	if err != nil {
		t.Fatal(err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		t.Fatal(err)
	}
	for _, program := range programs(at) {
		out, err := exec.Command(program[0], program[1:]...).CombinedOutput()
		if fmt.Printf("%s\n%s\n", strings.Join(program, " "), out); err != nil {
			t.Fatal(err)
		}
	}
	pprof.StopCPUProfile()
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	code := <-ended
	in.Close()
	if code != 0 {
		t.Fatalf("weir ended with %d", code)
	}
	return file.Name()
}
