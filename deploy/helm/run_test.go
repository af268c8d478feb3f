package helm

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// weir runs as the container of the rendered pod would: with its arguments, its environment and
// its files, but on free ports of the loopback address.
func TestRun(t *testing.T) {
	objects, err := render(t, strings.Replace(cases["everything"], `redis://:pa\"ss@redis:6379`, "memory://", 1))
	if err != nil {
		t.Fatal(err)
	}
	object, err := decode("Deployment", objects["Deployment/weir"])
	if err != nil {
		t.Fatal(err)
	}
	pod := object.(*appsv1.Deployment).Spec.Template.Spec
	root := t.TempDir()
	mount(t, root, pod, objects)

	weir := filepath.Join(root, "weir")
	build := exec.Command("make", "--directory", "../..", "build", "BIN="+root) // with what other tests have compiled
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var args []string
	for _, a := range pod.Containers[0].Args {
		args = append(args, strings.ReplaceAll(a, "/etc/weir", root+"/etc/weir"))
	}
	cmd := exec.Command(weir, append(args, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0")...)
	cmd.Dir, cmd.Env = root, []string{"WEIR_STORE=memory://"}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url := regexp.MustCompile(`http://[^ ]+`).FindString(line)
	for _, probe := range []*corev1.Probe{pod.Containers[0].StartupProbe, pod.Containers[0].LivenessProbe, pod.Containers[0].ReadinessProbe} {
		if status, text := get(t, url+probe.HTTPGet.Path, ""); status != 200 {
			t.Errorf("%s: %d %s", probe.HTTPGet.Path, status, text)
		}
	}
	if status, text := get(t, url+"/v1/rules", "0123456789abcdef"); status != 200 || !strings.Contains(text, `"api"`) {
		t.Errorf("the rules are %d %s", status, text)
	}
	if status, _ := get(t, url+"/v1/rules", "wrong-wrong-wrong"); status != 401 {
		t.Errorf("with a wrong token: %d", status)
	}
}

// mount writes the files that the pod's volumes have, below root.
func mount(t *testing.T, root string, pod corev1.PodSpec, objects map[string][]byte) {
	t.Helper()
	write := func(volume, name, content string) {
		for _, m := range pod.Containers[0].VolumeMounts {
			if m.Name != volume {
				continue
			}
			file := filepath.Join(root, m.MountPath, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			content = strings.ReplaceAll(content, ": /etc/weir", ": "+root+"/etc/weir")
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, v := range pod.Volumes {
		switch {
		case v.ConfigMap != nil:
			object, err := decode("ConfigMap", objects["ConfigMap/"+v.ConfigMap.Name])
			if err != nil {
				t.Fatal(err)
			}
			for name, content := range object.(*corev1.ConfigMap).Data {
				write(v.Name, name, content)
			}
		case v.Secret != nil && v.Secret.SecretName == "weir":
			object, err := decode("Secret", objects["Secret/weir"])
			if err != nil {
				t.Fatal(err)
			}
			for _, item := range v.Secret.Items {
				write(v.Name, item.Path, object.(*corev1.Secret).StringData[item.Key])
			}
		}
	}
}

func get(t *testing.T, url, token string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}
