package main

import (
	"archive/zip"
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/build"
)

// installed is the version that the other modules require, so that both share what is compiled of weir.
const installed = "v0.0.0"

// "go install" of a version gives the whole program. The module comes from a proxy in a
// directory, and what it depends on from the module cache of this machine. The go command checks
// the module as it checks any: names, sizes, checksums of dependencies.
func TestInstall(t *testing.T) {
	dir := t.TempDir()
	versions := filepath.Join(dir, "proxy", "github.com", "weirhq", "weir", "@v")
	if err := os.MkdirAll(versions, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"list": installed + "\n", installed + ".info": `{"Version": "` + installed + `"}`, installed + ".mod": string(read(t, "go.mod"))} {
		if err := os.WriteFile(filepath.Join(versions, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	size, err := write(filepath.Join(versions, installed+".zip"), func(w io.Writer) error { return zipModule(t, w) })
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the module has %s", megabytes(size))

	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	known := filepath.Join(strings.TrimSpace(string(cache)), "cache", "download")
	flags := build.FlagsOf(root) // with the profile, so dependencies are compiled once for all tests
	install := exec.Command("go", slices.Concat([]string{"install", "-modcacherw"}, flags, []string{"github.com/weirhq/weir/cmd/weir@" + installed})...)
	install.Dir = dir
	install.Env = append(append(install.Environ(), build.Environment(build.Host)...),
		"GOPROXY=file://"+filepath.ToSlash(filepath.Join(dir, "proxy"))+",file://"+filepath.ToSlash(known),
		"GOMODCACHE="+filepath.Join(dir, "modules"), "GOBIN="+dir, "GOSUMDB=off", "GONOPROXY=none", "GOPRIVATE=")
	if err := command(install); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "weir")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	if out, err := exec.Command(program, "--version").CombinedOutput(); err != nil || string(out) != "weir version "+installed+"\n" {
		t.Errorf("%q %v", out, err)
	}
	base := serve(t, program, dir)
	if page := get(t, base+"/"); !strings.Contains(page, "/assets/index.js") {
		t.Errorf("the dashboard is %s", page)
	}
	if script := get(t, base+"/assets/index.js"); script != string(read(t, "web/dist/assets/index.js")) {
		t.Errorf("the script of the dashboard has %d bytes", len(script))
	}
	if version := get(t, base+"/v1/version"); !strings.Contains(version, `"`+installed+`"`) {
		t.Error(version)
	}
}

// zipModule writes the module as a proxy would.
func zipModule(t *testing.T, w io.Writer) error {
	z := zip.NewWriter(w)
	for _, name := range sources(t) {
		member, err := z.Create("github.com/weirhq/weir@" + installed + "/" + name)
		if err != nil {
			return err
		}
		if _, err := member.Write(read(t, name)); err != nil {
			return err
		}
	}
	return z.Close()
}

var listens = regexp.MustCompile(`weir listens on (http://\S+)`)

// serve starts a program until the end of the test, and returns where it listens.
func serve(t *testing.T, program, dir string) string {
	t.Helper()
	cmd := exec.Command(program, "serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--rules", "none")
	cmd.Dir = dir
	output, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = cmd.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	var log strings.Builder
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if found := listens.FindStringSubmatch(lines.Text()); found != nil {
			go func() { _, _ = io.Copy(io.Discard, output) }()
			return found[1]
		}
		log.WriteString(lines.Text() + "\n")
	}
	t.Fatalf("it does not listen:\n%s", &log)
	return ""
}

func get(t *testing.T, url string) string {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != 200 {
		t.Fatalf("%s: %d %v %s", url, response.StatusCode, err, body)
	}
	return string(body)
}
