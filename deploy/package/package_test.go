package main

import (
	"crypto/sha256"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// call runs a command that must succeed, and returns what it prints.
func call(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "HOME="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return string(out)
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// packages makes the packages of a version, from a small program that stands in for weir, and
// returns their directory.
func packages(t *testing.T, version string) string {
	t.Helper()
	build, out := t.TempDir(), t.TempDir()
	write(t, build+"/source/go.mod", "module weir\n")
	write(t, build+"/source/main.go", "package main\n\nfunc main() { println(\"weir "+version+"\") }\n")
	cmd := exec.Command("go", "build", "-trimpath", "-o", build+"/linux_amd64/weir", ".")
	cmd.Dir, cmd.Env = build+"/source", append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	write(t, build+"/linux_arm64/weir", read(t, build+"/linux_amd64/weir"))
	for _, name := range []string{"man/weir.1", "man/weir-serve.1", "completions/weir.bash", "completions/_weir", "completions/weir.fish"} {
		write(t, filepath.Join(build, name), name+"\n")
	}
	// Each version has other rules, so that an upgrade must choose.
	if err := os.CopyFS(build+"/files", os.DirFS("files")); err != nil {
		t.Fatal(err)
	}
	write(t, build+"/files/rules.yaml", "rules: [] # "+version+"\n")
	j := job{files: build + "/files", version: version, binaries: build, out: out, progress: io.Discard}
	for range 2 { // the second time gives the same
		before := digests(t, out)
		if err := j.run(); err != nil {
			t.Fatal(err)
		}
		for name, digest := range digests(t, out) {
			if was, found := before[name]; found && was != digest {
				t.Errorf("%s is not reproducible", name)
			}
		}
	}
	return out
}

func digests(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	names, err := filepath.Glob(dir + "/*")
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string][32]byte{}
	for _, name := range names {
		sums[name] = sha256.Sum256([]byte(read(t, name)))
	}
	return sums
}

// installed are files of both packages.
var installed = []string{
	"/usr/bin/weir", "/usr/lib/systemd/system/weir.service", "/usr/lib/sysusers.d/weir.conf", "/etc/weir/weir.yaml", "/etc/weir/rules.yaml",
	"/usr/share/man/man1/weir.1.gz", "/usr/share/bash-completion/completions/weir", "/usr/share/doc/weir/copyright",
}

// The packages have every file, and what an administrator changes is theirs. As root, they are
// installed, upgraded and removed; others only look into them.
func TestPackages(t *testing.T) {
	old, latest := packages(t, "v0.1.0"), packages(t, "v0.2.0")
	t.Run("deb", func(t *testing.T) {
		file := old + "/weir_0.1.0_amd64.deb"
		list := call(t, "dpkg-deb", "--contents", file)
		for _, name := range installed {
			if !strings.Contains(list, " ."+name+"\n") {
				t.Errorf("there is no %s", name)
			}
		}
		if arch := call(t, "dpkg-deb", "--field", old+"/weir_0.1.0_arm64.deb", "Architecture"); arch != "arm64\n" {
			t.Errorf("the architecture is %s", arch)
		}
		if got := call(t, "dpkg-deb", "--info", file, "conffiles"); got != "/etc/weir/rules.yaml\n/etc/weir/weir.yaml\n" {
			t.Errorf("conffiles:\n%s", got)
		}
		if os.Getuid() != 0 {
			t.Log("not root: the package is not installed")
			return
		}
		testDebian(t, file, latest+"/weir_0.2.0_amd64.deb")
	})
	t.Run("rpm", func(t *testing.T) {
		file := old + "/weir-0.1.0-1.x86_64.rpm"
		list := call(t, "rpm", "-qpl", file)
		for _, name := range installed {
			if !strings.Contains(list, name+"\n") {
				t.Errorf("there is no %s", name)
			}
		}
		if got := call(t, "rpm", "-qp", "--configfiles", file); got != "/etc/weir/rules.yaml\n/etc/weir/weir.yaml\n" {
			t.Errorf("configuration:\n%s", got)
		}
		if os.Getuid() != 0 {
			t.Log("not root: the package is not installed")
			return
		}
		testRPM(t, file, latest+"/weir-0.2.0-1.x86_64.rpm")
	})
}

// newRoot is a small system of its own, with a shell and an empty list of users. Of useradd, it
// has one that only writes them down.
func newRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	write(t, root+"/bin/busybox", read(t, call(t, "sh", "-c", "command -v busybox | tr -d '\\n'")))
	for _, name := range []string{"sh", "chgrp", "chmod", "rm", "id", "echo"} {
		if err := os.Symlink("busybox", root+"/bin/"+name); err != nil {
			t.Fatal(err)
		}
	}
	write(t, root+"/bin/useradd", "#!/bin/sh\necho weir:x:990:990::/var/lib/weir:/usr/sbin/nologin >>/etc/passwd\necho weir:x:990: >>/etc/group\n")
	write(t, root+"/dev/null", "")
	write(t, root+"/etc/passwd", "root:x:0:0::/root:/bin/sh\n")
	write(t, root+"/etc/group", "root:x:0:\n")
	return root
}

// afterInstall checks a first installation, and changes what an administrator changes.
func afterInstall(t *testing.T, root string) {
	t.Helper()
	if got := call(t, root+"/usr/bin/weir"); got != "weir v0.1.0\n" {
		t.Errorf("installed: %s", got)
	}
	if got := read(t, root+"/etc/group"); !strings.Contains(got, "\nweir:x:990:") {
		t.Errorf("groups:\n%s", got)
	}
	if got := call(t, "stat", "--format", "%g %a", root+"/etc/weir", root+"/etc/weir/rules.yaml", root+"/etc/weir/weir.yaml"); got != "990 770\n990 660\n990 640\n" {
		t.Errorf("rights:\n%s", got)
	}
	write(t, root+"/etc/weir/rules.yaml", "rules: [] # mine\n")
	write(t, root+"/var/lib/weir/keys.snapshot", "usage")
}

func afterUpgrade(t *testing.T, root string) {
	t.Helper()
	if got := call(t, root+"/usr/bin/weir"); got != "weir v0.2.0\n" {
		t.Errorf("upgraded: %s", got)
	}
	if got := read(t, root+"/etc/weir/rules.yaml"); got != "rules: [] # mine\n" {
		t.Errorf("the rules are now:\n%s", got)
	}
	if got := read(t, root+"/etc/passwd"); strings.Count(got, "weir:x:") != 1 {
		t.Errorf("users:\n%s", got)
	}
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

func testDebian(t *testing.T, old, latest string) {
	root := newRoot(t)
	write(t, root+"/var/lib/dpkg/status", "")
	for _, dir := range []string{"info", "updates", "triggers"} {
		if err := os.MkdirAll(root+"/var/lib/dpkg/"+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dpkg := func(args ...string) {
		t.Helper()
		call(t, "dpkg", append([]string{"--root=" + root, "--force-depends", "--force-architecture", "--force-confold", "--log=/dev/null"}, args...)...)
	}
	dpkg("--install", old)
	afterInstall(t, root)
	dpkg("--install", latest)
	afterUpgrade(t, root)
	dpkg("--remove", "weir")
	if exists(root+"/usr/bin/weir") || !exists(root+"/etc/weir/rules.yaml") || !exists(root+"/var/lib/weir/keys.snapshot") {
		t.Error("removal took too much, or too little")
	}
	dpkg("--purge", "weir")
	if exists(root+"/etc/weir") || exists(root+"/var/lib/weir") {
		t.Error("a purge left something behind")
	}
}

func testRPM(t *testing.T, old, latest string) {
	root := newRoot(t)
	rpm := func(args ...string) {
		t.Helper()
		call(t, "rpm", append([]string{"--root", root, "--dbpath", "/var/lib/rpm"}, args...)...)
	}
	rpm("--initdb")
	rpm("--install", "--nodeps", "--ignorearch", old)
	afterInstall(t, root)
	rpm("--upgrade", "--nodeps", "--ignorearch", latest)
	afterUpgrade(t, root)
	rpm("--erase", "weir")
	if exists(root+"/usr/bin/weir") || !exists(root+"/var/lib/weir/keys.snapshot") {
		t.Error("removal took too much, or too little")
	}
	// What a user weir of an earlier installation has linked to is not given to the new one.
	write(t, root+"/etc/secret", "of root")
	before := call(t, "stat", "--format", "%g %a", root+"/etc/secret")
	for _, name := range []string{"rules.yaml", "weir.yaml"} {
		if err := os.MkdirAll(root+"/etc/weir", 0o770); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("../secret", root+"/etc/weir/"+name); err != nil {
			t.Fatal(err)
		}
	}
	rpm("--install", "--nodeps", "--ignorearch", old)
	if after := call(t, "stat", "--format", "%g %a", root+"/etc/secret"); after != before {
		t.Errorf("a file that is linked to has the rights %s, and had %s", after, before)
	}
}

// The service may do little, in the opinion of systemd; 0 is nothing, 10 is everything.
func TestServiceIsConfined(t *testing.T) {
	out := call(t, "systemd-analyze", "security", "--offline=yes", "--no-pager", "../systemd/weir.service")
	m := regexp.MustCompile(`Overall exposure level for weir\.service: ([0-9.]+)`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("systemd-analyze said:\n%s", out)
	}
	if level, err := strconv.ParseFloat(m[1], 64); err != nil || level > 2.0 {
		t.Errorf("the exposure is %s, want at most 2.0:\n%s", m[1], out)
	}
}

// The service starts weir with the settings file of the package, which has only known paths.
func TestServiceUsesThePackage(t *testing.T) {
	unit, settings := read(t, "../systemd/weir.service"), read(t, "files/weir.yaml")
	for _, want := range []string{"ExecStart=/usr/bin/weir serve --config /etc/weir/weir.yaml\n", "User=weir\n", "StateDirectory=weir\n"} {
		if !strings.Contains(unit, want) {
			t.Errorf("the unit has no %s", want)
		}
	}
	for _, want := range []string{"\nrules: /etc/weir/rules.yaml\n", "\ndata: /var/lib/weir\n"} {
		if !strings.Contains(settings, want) {
			t.Errorf("the settings have no %s", want)
		}
	}
}
