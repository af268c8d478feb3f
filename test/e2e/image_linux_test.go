package e2e

import (
	"archive/tar"
	"debug/elf"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/weirhq/weir/internal/testkit/testredis"
)

// maxImage is how large the image may be, in bytes.
const maxImage = 40_000_000

// container is an image that was built, unpacked.
type container struct {
	root   string // its file system
	Config struct {
		User, WorkingDir     string
		Entrypoint, Cmd, Env []string
		ExposedPorts         map[string]any
		Labels               map[string]string
		Healthcheck          struct{ Test []string }
	} `json:"config"`
}

// The image has one static binary, small, for a user without rights; it says what it is.
func TestImage(t *testing.T) {
	i := buildImage(t)
	c := i.Config
	if c.User != "65532:65532" || c.WorkingDir != "/etc/weir" || len(c.ExposedPorts) != 3 {
		t.Errorf("user %s in %s, ports %v", c.User, c.WorkingDir, c.ExposedPorts)
	}
	for name, want := range map[string]string{"version": "0.1.0", "licenses": "MIT", "source": "https://github.com/weirhq/weir"} {
		if got := c.Labels["org.opencontainers.image."+name]; got != want {
			t.Errorf("the label %s is %q, want %q", name, got, want)
		}
	}
	var files []string
	size := int64(0)
	err := filepath.WalkDir(i.root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		files, size = append(files, strings.TrimPrefix(path, i.root)), size+info.Size()
		return err
	})
	if err != nil || !slices.Equal(files, []string{"/etc/weir/rules.yaml", "/usr/bin/weir"}) || size > maxImage {
		t.Errorf("%d bytes, at most %d, in %q, %v", size, maxImage, files, err)
	}
	program, err := elf.Open(filepath.Join(i.root, "usr/bin/weir"))
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	if slices.ContainsFunc(program.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		t.Error("the binary is not static")
	}

	// Without tokens it does not start, and says how to give it one.
	out, err := i.command(t, slices.Concat(c.Entrypoint, c.Cmd)).CombinedOutput()
	if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(string(out), "set --admin-token-file or WEIR_ADMIN_TOKEN") {
		t.Errorf("without tokens: %v\n%s", err, out)
	}
	if os.Getuid() != 0 {
		t.Log("not root: the image runs as the present user, and outside its file system")
	}
	i.run(t)
	i.run(t, "WEIR_DATA=/var/lib/weir")
	if saved, err := filepath.Glob(filepath.Join(i.root, "var/lib/weir/*.snapshot")); err != nil || len(saved) == 0 {
		t.Errorf("nothing was saved: %v", err)
	}
	// Not even a rules file is needed.
	os.Chmod(filepath.Join(i.root, c.WorkingDir), 0o755)
	if err := os.Remove(filepath.Join(i.root, "etc/weir/rules.yaml")); err != nil {
		t.Fatal(err)
	}
	i.run(t, "WEIR_RULES=")
	i.runTLS(t)
}

// runTLS runs the image with TLS that only the flags tell of: the health check finds that out. If
// client certificates are required, it needs one.
func (i *container) runTLS(t *testing.T) {
	t.Helper()
	etc := filepath.Join(i.root, i.Config.WorkingDir)
	os.Chmod(etc, 0o755)
	testredis.Certify(t, filepath.Join(etc, "ca.pem"), filepath.Join(etc, "cert.pem"), filepath.Join(etc, "key.pem"))
	for _, name := range []string{"ca.pem", "cert.pem", "key.pem"} {
		if err := os.Chmod(filepath.Join(etc, name), 0o644); err != nil { // for the user of the image
			t.Fatal(err)
		}
	}
	for _, flags := range [][]string{nil, {"--tls-client-ca=ca.pem"}} {
		p, port := i.start(t, append(flags, "--tls-cert=cert.pem", "--tls-key=key.pem"), "WEIR_RULES=")
		if !strings.HasPrefix(p.URL, "https://") {
			t.Errorf("%q: it listens on %s", flags, p.URL)
		}
		out, err := i.health(t, port)
		if needs := flags != nil; (err != nil) != needs || needs && !strings.Contains(string(out), "client certificate with --cert and --key") {
			t.Errorf("%q: the health check: %v\n%s", flags, err, out)
		}
		if out, err := i.health(t, port, "WEIR_CERT=cert.pem", "WEIR_KEY=key.pem"); err != nil || string(out) != "ready\n" {
			t.Errorf("%q: the health check with a certificate: %v\n%s", flags, err, out)
		}
		p.kill()
	}
}

// start starts the image as a container does, on free ports.
func (i *container) start(t *testing.T, flags []string, environment ...string) (p *process, port string) {
	t.Helper()
	cmd := i.command(t, slices.Concat(i.Config.Entrypoint, i.Config.Cmd, flags), append(environment,
		"WEIR_ADMIN_TOKEN=0123456789abcdef0123456789abcdef", "WEIR_HTTP=0.0.0.0:0", "WEIR_GRPC=0.0.0.0:0")...)
	p, err := begin(cmd, cmd.Dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	if err := p.listens(); err != nil {
		t.Fatal(err)
	}
	return p, p.URL[strings.LastIndex(p.URL, ":")+1:]
}

// health is the health check of the image.
func (i *container) health(t *testing.T, port string, environment ...string) ([]byte, error) {
	t.Helper()
	return i.command(t, i.Config.Healthcheck.Test[1:], append(environment, "WEIR_HTTP=0.0.0.0:"+port)...).CombinedOutput()
}

// run runs the image as a container does, with its defaults and some variables, on free ports.
func (i *container) run(t *testing.T, environment ...string) {
	t.Helper()
	p, port := i.start(t, nil, environment...)
	url := "http://127.0.0.1:" + port
	if a := ask(t, client(t), "POST", url+"/v1/check", alice, "Weir-Token", "0123456789abcdef0123456789abcdef"); a.Status != http.StatusOK || !a.Allowed {
		t.Errorf("%d %s", a.Status, a.Text)
	}
	if a := ask(t, client(t), "GET", url+"/v1/rules", ""); a.Status != http.StatusUnauthorized {
		t.Errorf("without a token: %d %s", a.Status, a.Text)
	}
	if out, err := i.health(t, port); err != nil || string(out) != "ready\n" {
		t.Errorf("the health check: %v\n%s", err, out)
	}
	if code := p.stop(t); code != 0 {
		t.Errorf("it ended with %d:\n%s", code, p.log)
	}
	if out, err := i.health(t, port); err == nil {
		t.Errorf("the health check finds a weir that has stopped:\n%s", out)
	}
}

// command is one in the image, by its user, in its own file system alone. Only root can do
// that; anybody else runs it in a directory that is not writable.
func (i *container) command(t *testing.T, args []string, environment ...string) *exec.Cmd {
	t.Helper()
	if i.Config.Healthcheck.Test[0] != "CMD" {
		t.Fatalf("the health check needs a shell: %q", i.Config.Healthcheck.Test)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Dir = slices.Concat(i.Config.Env, environment), i.Config.WorkingDir
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: i.root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
		return cmd
	}
	cmd.Path, cmd.Dir = i.root+cmd.Path, filepath.Join(i.root, cmd.Dir)
	if err := os.Chmod(cmd.Dir, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(cmd.Dir, 0o755) })
	for n, variable := range cmd.Env {
		cmd.Env[n] = strings.Replace(variable, "=/", "="+i.root+"/", 1)
	}
	return cmd
}

// buildImage builds the image with the binary under test, and unpacks it.
func buildImage(t *testing.T) *container {
	t.Helper()
	dir := t.TempDir()
	storage := write(t, dir, "storage.conf", "[storage]\ndriver = \"vfs\"\ngraphroot = \""+dir+"/images\"\nrunroot = \""+dir+"/run\"\n")
	call := func(name string, args ...string) {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Env = append(os.Environ(), "CONTAINERS_STORAGE_CONF="+storage, "BUILDAH_ISOLATION=chroot",
			"HOME="+dir, "TMPDIR="+dir, "XDG_RUNTIME_DIR="+dir,
			"VERSION=v0.1.0", "BINARY="+filepath.Join(bin, "weir"), "CONTEXT="+filepath.Join(dir, "context"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
	}
	t.Cleanup(func() { // layers have directories that only root could remove
		filepath.WalkDir(dir, func(path string, entry fs.DirEntry, _ error) error {
			if entry.IsDir() {
				os.Chmod(path, 0o700)
			}
			return nil
		})
	})
	call("../../scripts/image.sh")
	call("buildah", "push", "weir:0.1.0", "docker-archive:"+dir+"/image.tar:weir:0.1.0")
	call("tar", "-xf", dir+"/image.tar", "-C", dir)
	var manifest []struct {
		Config string
		Layers []string
	}
	decodeFile(t, filepath.Join(dir, "manifest.json"), &manifest)
	i := &container{root: filepath.Join(dir, "root")}
	decodeFile(t, filepath.Join(dir, manifest[0].Config), i)
	for _, layer := range manifest[0].Layers {
		unpack(t, filepath.Join(dir, layer), i.root)
	}
	return i
}

func decodeFile(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// unpack unpacks a layer. Everything belongs to whoever runs the test; in an image, that is root.
func unpack(t *testing.T, layer, root string) {
	t.Helper()
	file, err := os.Open(layer)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for r := tar.NewReader(file); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil || h.Uid != 0 || h.Gid != 0 || h.Typeflag != tar.TypeDir && h.Typeflag != tar.TypeReg {
			t.Fatalf("%v in %s: %v", h, layer, err)
		}
		path := filepath.Join(root, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else {
			var content []byte
			if content, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(path, content, 0o600)
			}
		}
		if err == nil {
			err = os.Chmod(path, h.FileInfo().Mode()) // which sets the sticky bit, too
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
