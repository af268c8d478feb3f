package e2e

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// tutorial runs the commands of a page, one block after the other, as a reader
// would: commands that go on until they are stopped each have a terminal of their own.
type tutorial struct {
	dir     string
	redis   string              // the port of its Redis, in place of 6379
	servers map[string]*process // by the port that the page has for them
	served  string              // the last command that started a weir
	t       *testing.T
}

// fence is a block of a page.
var fence = regexp.MustCompile("(?m)^```([a-z]*)\n((?s:.*?))^```\n")

// What docs/start.md shows is what its commands print.
func TestDocsStart(t *testing.T) { follow(t, "../../docs/start.md", 25, 18) }

// What docs/guides/backup.md says of backups is so.
func TestDocsBackup(t *testing.T) { follow(t, "../../docs/guides/backup.md", 20, 10) }

// What docs/guides/identity.md shows of tokens is so.
func TestDocsIdentity(t *testing.T) { follow(t, "../../docs/guides/identity.md", 9, 6) }

// follow runs a page, which has so many commands and outputs at least.
func follow(t *testing.T, page string, commands, outputs int) {
	src, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(freeAddress(t))
	tut := &tutorial{dir: t.TempDir(), redis: port, servers: map[string]*process{}, t: t}
	if err := os.Mkdir(filepath.Join(tut.dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(bin, "weir"), filepath.Join(tut.dir, "bin", "weir")); err != nil {
		t.Fatal(err)
	}
	steps, shown, command := 0, 0, ""
	var got string // what the last command has printed, if no block was held against it yet
	unshown := func() {
		if got != "" {
			t.Errorf("%s prints what the page does not show:\n%s", command, got)
		}
	}
	blocks := fence.FindAllStringSubmatch(string(src), -1)
	written := fence.ReplaceAllStringFunc(string(src), func(text string) string {
		language, body := blocks[0][1], blocks[0][2]
		if blocks = blocks[1:]; language == "sh" {
			unshown()
			want := ""
			if len(blocks) > 0 && blocks[0][1] != "sh" {
				want = blocks[0][2]
			}
			steps++
			command = body
			got = tut.run(command, want)
			return text
		}
		if language == "go" { // which the package of the example checks
			return text
		}
		shown++
		out := got
		if got = ""; plain(body) == plain(out) {
			return text
		}
		if !*update {
			t.Errorf("%s shows below %q\n%s\nand the output is\n%s", page, command, body, out)
		}
		return "```" + language + "\n" + out + "```\n"
	})
	unshown()
	if steps < commands || shown < outputs {
		t.Errorf("only %d commands and %d outputs were found", steps, shown)
	}
	if *update && written != string(src) {
		if err := os.WriteFile(page, []byte(written), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// run runs a command and returns what it prints, in the form in which the page shows it.
func (tut *tutorial) run(command, want string) string {
	tut.t.Helper()
	switch {
	case strings.HasPrefix(command, "make "):
		// The binary is there already; make is asked only whether it could build it.
		makes(tut.t, filepath.Join(tut.dir, "bin"), append([]string{"-n"}, strings.Fields(command)[1:]...)...)
		return ""
	case strings.HasPrefix(command, "bin/weir serve "):
		return tut.serve(command)
	case command == "sudo systemctl stop weir\n": // which sends SIGTERM, and waits
		tut.servers["8080"].stop(tut.t)
		return ""
	case command == "sudo systemctl start weir\n":
		tut.serve(tut.served)
		return ""
	case strings.HasPrefix(command, "redis-server "):
		tut.startRedis(command)
		return ""
	}
	// A changed file is in force within a second, statistics of a second come after it, and a
	// Redis that was restarted is noticed soon. Asking charges nothing, so they are asked again
	// until they are there.
	again := strings.HasPrefix(command, "bin/weir rules list") || strings.HasPrefix(command, "bin/weir top") || strings.HasPrefix(command, "bin/weir keys user")
	patience := 2 * time.Minute
	if *update {
		patience = 5 * time.Second // what comes then is written into the page
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		out, err := tut.shell(command)
		late := !again || time.Now().After(deadline)
		if err != nil && late {
			tut.t.Fatalf("%s: %v\n%s", command, err, out)
		}
		if got := tut.form(out, want); late || err == nil && plain(got) == plain(want) {
			return got
		}
	}
}

// environment makes commands talk to the server of the page's default port.
func (tut *tutorial) environment() []string {
	env := append(os.Environ(), "WEIR_HTTP=127.0.0.1:0", "WEIR_GRPC=127.0.0.1:0")
	if p := tut.servers["8080"]; p != nil {
		env = append(env, "WEIR_SERVER="+p.URL)
	}
	return env
}

// shell runs a command to its end.
func (tut *tutorial) shell(command string) (string, error) {
	cmd := exec.Command("sh", "-c", tut.real(command))
	cmd.Dir, cmd.Env = tut.dir, tut.environment()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

var httpFlag = regexp.MustCompile(`--http 127\.0\.0\.1:(\d+)`)

// serve starts a weir, in the place of one that had the same port.
func (tut *tutorial) serve(command string) string {
	tut.t.Helper()
	port := "8080"
	if m := httpFlag.FindStringSubmatch(command); m != nil {
		port = m[1]
	}
	if old := tut.servers[port]; old != nil {
		old.stop(tut.t)
	}
	tut.served = command
	command = httpFlag.ReplaceAllString(tut.real(command), "")
	lonely := strings.Contains(command, "--grpc off")
	// On a busy machine, a check may take longer than the usual 50 ms, and would be decided
	// without Redis.
	patient := strings.ReplaceAll(command, ":"+tut.redis, ":"+tut.redis+"'?timeout=10s'")
	cmd := exec.Command("sh", "-c", "exec "+strings.ReplaceAll(patient, "--grpc off", ""))
	cmd.Env = tut.environment()
	p, err := begin(cmd, tut.dir)
	if err != nil {
		tut.t.Fatal(err)
	}
	tut.t.Cleanup(p.kill)
	if err := p.listens(); err != nil {
		tut.t.Fatal(err)
	}
	tut.servers[port] = p
	store := "memory://"
	if _, url, ok := strings.Cut(command, "--store "); ok {
		store = strings.ReplaceAll(strings.Fields(url)[0], tut.redis, "6379")
	}
	rules := "rules.yaml"
	if strings.Contains(command, "--rules redis ") {
		rules = "redis"
	}
	out := "weir listens on http://127.0.0.1:" + port + " (rules: " + rules + ", store: " + store + ")\n"
	if !lonely {
		out += "weir listens for gRPC on 127.0.0.1:8081\n"
	}
	return out
}

// startRedis runs a Redis until the page, or the test, ends it.
func (tut *tutorial) startRedis(command string) {
	tut.t.Helper()
	cmd := exec.Command("sh", "-c", "exec "+tut.real(command))
	cmd.Dir = tut.dir
	if err := cmd.Start(); err != nil {
		tut.t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() { cmd.Wait(); close(exited) }()
	tut.t.Cleanup(func() { cmd.Process.Kill(); <-exited })
	waitFor(tut.t, "Redis", func() bool {
		c, err := net.Dial("tcp", "127.0.0.1:"+tut.redis)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// real has the ports that are in use in the place of those of the page.
func (tut *tutorial) real(command string) string {
	for port, p := range tut.servers {
		command = strings.ReplaceAll(command, "http://127.0.0.1:"+port, p.URL)
	}
	return strings.ReplaceAll(command, "6379", tut.redis)
}

var results = regexp.MustCompile(`(?s)"results": \[.*\]`)

// form writes output as the page does: with its ports, JSON indented, without what the
// page leaves out, and without carriage returns.
func (tut *tutorial) form(out, want string) string {
	for port, p := range tut.servers {
		out = strings.ReplaceAll(out, p.URL, "http://127.0.0.1:"+port)
	}
	out = strings.ReplaceAll(out, "\r", "")
	var indented bytes.Buffer
	if json.Indent(&indented, []byte(out), "", "  ") == nil {
		out = strings.TrimSpace(indented.String()) + "\n"
	}
	if strings.Contains(want, `"results": […]`) {
		out = results.ReplaceAllString(out, `"results": […]`)
	}
	if lines := strings.SplitAfter(want, "\n"); strings.HasSuffix(want, "\n…\n") {
		if all := strings.SplitAfter(out, "\n"); len(all) >= len(lines) {
			out = strings.Join(all[:len(lines)-2], "") + "…\n"
		}
	}
	return out
}

var (
	moment   = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|\d\d:\d\d:\d\d|\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT`)
	duration = regexp.MustCompile(`(^|[^/\w])(?:[\d.]+ ?(?:ms|µs|s|m|h))+\b`)
	varying  = regexp.MustCompile(`("(?:reset_at|reset_after_ms|retry_after_ms|retry_after)": ?|X-Ratelimit-Reset: |Retry-After: |Content-Length: |;t=)[1-9]\d*`)
	request  = regexp.MustCompile(`(X-Request-Id: ).*`)
	figure   = regexp.MustCompile(`[\d.]+( %|/s) *`)
	blanks   = regexp.MustCompile(` +`)
)

// plain is output without what differs from run to run.
func plain(out string) string {
	out = moment.ReplaceAllString(out, "T")
	out = figure.ReplaceAllString(out, "")
	out = varying.ReplaceAllString(out, "${1}N")
	out = request.ReplaceAllString(out, "${1}N")
	out = duration.ReplaceAllString(out, "${1}D")
	return strings.TrimSpace(blanks.ReplaceAllString(out, " "))
}
