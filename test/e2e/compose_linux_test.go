package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/weirhq/weir/internal/testkit/testredis"
)

// The compose file starts weir with flags and variables that work: with a Redis under the name
// that it has there, and a token.
func TestCompose(t *testing.T) {
	const dir = "../../deploy/compose/"
	text, err := os.ReadFile(dir + "compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct {
			Image       string
			Command     []string
			Environment map[string]string
			Volumes     []string
			ReadOnly    bool `yaml:"read_only"`
		}
		Volumes map[string]any
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	weir := file.Services["weir"]
	if !strings.HasPrefix(weir.Image, "weir:") || !weir.ReadOnly || len(file.Services) != 3 {
		t.Errorf("%d services, weir is %+v", len(file.Services), weir)
	}
	for name, service := range file.Services {
		for _, volume := range service.Volumes {
			source, _, _ := strings.Cut(volume, ":")
			if _, isNamed := file.Volumes[source]; isNamed {
				continue
			}
			if _, err := os.Stat(dir + source); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}

	// Prometheus finds its rules beside its configuration.
	etc := t.TempDir()
	for target, source := range map[string]string{"prometheus.yml": dir + "prometheus.yaml", "weir-rules.yaml": dir + "../prometheus/weir-rules.yaml"} {
		content, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		write(t, etc, target, string(content))
	}
	if out, err := exec.Command("promtool", "check", "config", filepath.Join(etc, "prometheus.yml")).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}

	redis := testredis.Start(t, file.Services["redis"].Command[1:]...)
	policy := regexp.MustCompile("\\*\\*Eviction: `maxmemory-policy ([a-z-]+)`").FindStringSubmatch(readPage(t, "docs/guides/redis.md"))
	if set := redis.Do("CONFIG", "GET", "maxmemory-policy"); policy == nil || !strings.Contains(set, policy[1]) {
		t.Errorf("Redis has %q, and docs/guides/redis.md says %q", set, policy)
	}
	data := t.TempDir()
	args := slices.Clone(weir.Command)
	for i, arg := range args {
		args[i] = strings.Replace(arg, "redis://redis:6379", "redis://"+redis.Addr+"?timeout=10s", 1)
	}
	environment := []string{"WEIR_HTTP=127.0.0.1:0", "WEIR_GRPC=127.0.0.1:0"}
	for name, value := range weir.Environment {
		if _, standard, given := strings.Cut(value, ":-"); strings.HasPrefix(value, "${") && given {
			value = strings.TrimSuffix(standard, "}")
		} else if strings.HasPrefix(value, "${") {
			value = "0123456789abcdef0123456789abcdef"
		}
		environment = append(environment, name+"="+strings.Replace(value, "/var/lib/weir", data, 1))
	}
	p, err := launch(t.TempDir(), environment, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer p.kill()
	const token = "Bearer 0123456789abcdef0123456789abcdef"
	if a := ask(t, client(t), "PUT", p.URL+"/v1/rules", perUser, "If-Match", "*", "Authorization", token); a.Status != http.StatusOK {
		t.Errorf("%d %s", a.Status, a.Text)
	}
	if a := ask(t, client(t), "POST", p.URL+"/v1/check", alice, "Authorization", token); a.Status != http.StatusOK || a.Degraded || a.Limit != 5 {
		t.Errorf("%d %s", a.Status, a.Text)
	}
	if redis.Do("KEYS", "weir:*alice*") == "" {
		t.Error("the usage is not in Redis")
	}

	// A Redis that is full evicts what resets soonest, and keeps the rules.
	before, err := redis.Info("memory", "used_memory")
	if err != nil {
		t.Fatal(err)
	}
	used, err := strconv.Atoi(before)
	if err != nil {
		t.Fatal(err)
	}
	redis.Do("EVAL", "for i = 1, 1000 do redis.call('SET', 'weir:filler:' .. i, string.rep('x', 1000), 'PX', 1000 * i) end", "0")
	redis.Do("CONFIG", "SET", "maxmemory", strconv.Itoa(used+500_000))
	if a := ask(t, client(t), "POST", p.URL+"/v1/check", alice, "Authorization", token); a.Status != http.StatusOK || a.Degraded || a.Limit != 5 {
		t.Errorf("with a full Redis: %d %s", a.Status, a.Text)
	}
	if evicted, err := redis.Info("stats", "evicted_keys"); err != nil || evicted == "0" {
		t.Errorf("Redis has evicted %s, %v", evicted, err)
	}
	if a := ask(t, client(t), "GET", p.URL+"/v1/rules", "", "Authorization", token); a.Status != http.StatusOK || !strings.Contains(a.Text, `"limit"`) {
		t.Errorf("with a full Redis, the rules are %d %s", a.Status, a.Text)
	}
	if code := p.stop(t); code != 0 {
		t.Errorf("it ended with %d:\n%s", code, p.log)
	}
}
