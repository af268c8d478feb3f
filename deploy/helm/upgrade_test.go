package helm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// cluster is a Kubernetes that has no object but the Secret and the Deployment of the release.
type cluster struct {
	*rest.Config
	secret     *corev1.Secret
	deployment *appsv1.Deployment
}

func newCluster(t *testing.T) *cluster {
	k := new(cluster)
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, o any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(o); err != nil {
			t.Error(err)
		}
	}
	mux.HandleFunc("GET /api/v1", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "secrets", Kind: "Secret", Namespaced: true}}})
	})
	mux.HandleFunc("GET /api/v1/namespaces/limits/secrets/weir", func(w http.ResponseWriter, r *http.Request) {
		if k.secret == nil {
			http.NotFound(w, r)
			return
		}
		answer(w, k.secret)
	})
	mux.HandleFunc("GET /apis/apps/v1", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, metav1.APIResourceList{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "deployments", Kind: "Deployment", Namespaced: true}}})
	})
	mux.HandleFunc("GET /apis/apps/v1/namespaces/limits/deployments/weir", func(w http.ResponseWriter, r *http.Request) {
		if k.deployment == nil {
			http.NotFound(w, r)
			return
		}
		answer(w, k.deployment)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	k.Config = &rest.Config{Host: server.URL}
	return k
}

// apply stores the Secret of a release, as Kubernetes does: encoded.
func (k *cluster) apply(t *testing.T, objects map[string][]byte) {
	t.Helper()
	k.secret = object[*corev1.Secret](t, objects, "Secret/weir")
	k.secret.Data = map[string][]byte{}
	for key, value := range k.secret.StringData {
		k.secret.Data[key] = []byte(value)
	}
	k.secret.StringData = nil
}

// revision renders a revision of the release, in a cluster or as helm template does, and returns its pods, too.
func revision(t *testing.T, k *cluster, number int, url, more string) (map[string][]byte, corev1.PodTemplateSpec) {
	t.Helper()
	var config *rest.Config
	if k != nil {
		config = k.Config
	}
	quoted, err := json.Marshal(url)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := renderRevision(t, "store: {url: "+string(quoted)+"}\n"+more, number, config)
	if err != nil {
		t.Fatal(err)
	}
	return objects, object[*appsv1.Deployment](t, objects, "Deployment/weir").Spec.Template
}

// An upgrade makes new pods exactly if it changes what weir does not reload by itself.
func TestUpgrade(t *testing.T) {
	const tokens = "tokens: {content: a admin 0123456789abcdef}\n"
	k := newCluster(t)
	var before string
	for i, step := range []struct {
		what, url, more string
		restarts        bool
		fails           bool // after Kubernetes has the Secret, before it has the Deployment
	}{
		{"install", "redis://:one@redis", tokens, true, false},
		{"nothing", "redis://:one@redis", tokens, false, false},
		{"rules", "redis://:one@redis", tokens + "rules: {content: 'rules: [{id: a, key: ip, limit: 1/1s}]'}", false, false},
		{"a token", "redis://:one@redis", "tokens: {content: b admin fedcba9876543210}", false, false},
		{"a setting", "redis://:one@redis", tokens + "settings: {log_level: debug}", true, false},
		{"no setting", "redis://:one@redis", tokens, true, false},
		{"the password", "redis://:two@redis", tokens, true, false},
		{"nothing again", "redis://:two@redis", tokens, false, false},
		{"the password, in vain", "redis://:three@redis", tokens, false, true},
		{"the same, with success", "redis://:three@redis", tokens, true, false},
		{"the password of before", "redis://:two@redis", tokens, true, false},
		{"an option", "redis://:two@redis?timeout=1s", tokens, true, false},
		{"the server", "redis://:two@valkey?timeout=1s", tokens, true, false},
	} {
		objects, template := revision(t, k, i+1, step.url, step.more)
		k.apply(t, objects)
		if step.fails {
			continue
		}
		if after := template.String(); (after != before) != step.restarts {
			t.Errorf("%s: new pods: %v, want %v", step.what, after != before, step.restarts)
		} else {
			before = after
		}
	}
}

// Autoscaling neither stops pods when it is enabled, nor when the release is upgraded later.
func TestAutoscaling(t *testing.T) {
	const autoscaled = "tokens: {existingSecret: a}\nreplicas: 3\nautoscaling: {enabled: true}"
	k := newCluster(t)
	for i, running := range []int32{0, 3, 7} { // 0: it is being installed
		if running > 0 {
			k.deployment = &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, Spec: appsv1.DeploymentSpec{Replicas: &running}}
		}
		objects, _ := revision(t, k, i+1, "redis://redis", autoscaled)
		if got := object[*appsv1.Deployment](t, objects, "Deployment/weir").Spec.Replicas; (got == nil) != (running == 0) || got != nil && *got != running {
			t.Errorf("with %d pods, replicas is %v", running, got)
		}
	}
}

// Whoever may read pods learns nothing about a password: the pods are the same with any. helm template, which
// cannot know what was before, renders the same each time, and other pods for another server.
func TestPasswordsStaySecret(t *testing.T) {
	for i, url := range []string{
		"redis://:PASSWORD@redis:6379/1", "redis://:PASSWORD@redis:6379/1", "rediss://alice:PASSWORD@redis", "redis://:PASS/WORD@redis", "redis://:PASS@WORD@redis",
		"redis://:PASS?WORD@redis", "redis://:PASS#WORD@redis", "redis+sentinel://:PASSWORD@a:26379,b:26379/main/0?sentinel_password=WORD",
		"redis+sentinel://a/main?sentinel_password=PASS@WORD", "redis+cluster://:PASSWORD@a,b", "redis+unix:///run/redis.sock?sentinel_password=PASSWORD", "PASSWORD", ":PASSWORD@redis",
	} {
		var k *cluster
		if i == 0 {
			k = newCluster(t)
		}
		texts := map[string]bool{}
		for _, password := range []string{"one", "two"} {
			objects, _ := revision(t, k, 2, strings.NewReplacer("PASS", password, "WORD", password).Replace(url), "tokens: {existingSecret: a}")
			delete(objects, "Secret/weir")
			texts[fmt.Sprintf("%s", objects)] = true
		}
		if len(texts) != 1 {
			t.Errorf("%s: other objects than the Secret depend on the password", url)
		}
	}
	pods := func(url string) string {
		_, template := revision(t, nil, 1, url, "tokens: {existingSecret: a}")
		return template.String()
	}
	if once := pods("redis://:one@redis"); once != pods("redis://:one@redis") || once == pods("redis://:one@valkey") || once == pods("redis://:one@redis/1") {
		t.Error("without a cluster, the pods do not depend on the server and the database alone")
	}
}
