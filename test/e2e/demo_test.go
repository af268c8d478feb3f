package e2e

import (
	"bufio"
	"fmt"
	"image"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// demo runs weir demo, and returns its address.
func demo(t *testing.T, args ...string) (url string, cmd *exec.Cmd) {
	t.Helper()
	cmd = exec.Command(filepath.Join(bin, "weir"), append([]string{"demo", "--http", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	errors := &log{}
	cmd.Stderr = errors
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // unless the test did
		if t.Failed() {
			t.Log(errors)
		}
	})
	lines := bufio.NewReader(out)
	for url == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("it says nothing about a dashboard: %v", err)
		}
		if found := regexp.MustCompile(`dashboard +(http://\S+)/\n`).FindStringSubmatch(line); found != nil {
			url = found[1]
		}
	}
	go io.Copy(io.Discard, lines)
	return url, cmd
}

// The demo shows a login attack, an abuser, a trial and tokens, and leaves nothing behind.
func TestDemo(t *testing.T) {
	url, cmd := demo(t, "--speed", "8")
	c := client(t)
	for _, rule := range []string{"login", "search", "plan", "search-trial", "chat-tokens"} {
		waitFor(t, "requests of "+rule, func() bool {
			return strings.Contains(ask(t, c, "GET", url+"/v1/stats/clients?by=total&rule="+rule, "").Text, `"key":`)
		})
	}
	waitFor(t, "a denied attacker", func() bool {
		return strings.Contains(ask(t, c, "GET", url+"/v1/stats/clients?by=denied&rule=login", "").Text, `"ip:203.0.113.1`)
	})
	waitFor(t, "settled tokens", func() bool {
		return regexp.MustCompile(`weir_hold_events_total{event="settled"} [1-9]`).MatchString(ask(t, c, "GET", url+"/metrics", "").Text)
	})
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after Ctrl-C: %v", err)
	}
	for _, v := range cmd.Env {
		if dir, found := strings.CutPrefix(v, "TMPDIR="); found {
			if left, err := filepath.Glob(filepath.Join(dir, "weir-demo-*")); err != nil || len(left) > 0 {
				t.Errorf("it leaves %v, %v", left, err)
			}
		}
	}
}

// README's picture is of the demo; -update takes it again, after all scenes.
func TestDemoPicture(t *testing.T) {
	const name = "demo"
	kept, err := os.ReadFile("../../docs/images/" + name + ".png")
	if *update {
		url, _ := demo(t, "--speed", "2.2")
		from, to := time.Now().Unix(), int64(0)
		waitFor(t, "all scenes", func() bool {
			seconds := 0
			seconds, to = onRecord(t, url, from)
			return seconds > 100
		})
		page := openBrowser(t).open(url, fmt.Sprintf("#/overview?from=%d&to=%d", from+1, to))
		page.look(1200, 1000, "light")
		page.settle()
		page.run("take a picture", picture(&kept))
		keepPicture(t, "../../docs/images", name, kept)
	} else if err != nil {
		t.Fatal(err)
	}
	if size, err := pngSize(kept); err != nil || size != image.Pt(1200, 1000) {
		t.Errorf("the picture is %v, %v", size, err)
	}
}
