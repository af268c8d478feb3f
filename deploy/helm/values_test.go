package helm

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// The Go runtime stays below the memory limit, in whatever unit that is.
func TestGoMemory(t *testing.T) {
	for _, memory := range []string{"512Mi", "1Gi", "1.5Gi", "512M", "2G", "262144Ki", "500000k", "536870912", "5e8", "1Ti"} {
		objects, err := render(t, "tokens: {content: a admin 0123456789abcdef}\nresources: {limits: {memory: "+memory+"}}")
		if err != nil {
			t.Fatal(err)
		}
		c := object[*appsv1.Deployment](t, objects, "Deployment/weir").Spec.Template.Spec.Containers[0]
		i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "GOMEMLIMIT" })
		if i < 0 {
			t.Fatalf("%s: there is no GOMEMLIMIT", memory)
		}
		if want := strconv.FormatInt(c.Resources.Limits.Memory().Value()*9/10, 10); c.Env[i].Value != want {
			t.Errorf("%s: GOMEMLIMIT is %s, want %s", memory, c.Env[i].Value, want)
		}
	}
	objects, err := render(t, cases["TLS and rules that exist"])
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(objects["Deployment/weir"]), "GOMEMLIMIT") {
		t.Error("there is a GOMEMLIMIT without a memory limit")
	}
}

// What the values say is in the objects.
func TestValues(t *testing.T) {
	objects, err := render(t, cases["everything"])
	if err != nil {
		t.Fatal(err)
	}
	if image := object[*appsv1.Deployment](t, objects, "Deployment/weir").Spec.Template.Spec.Containers[0].Image; image != "registry.example.com/weir:0.1.0@sha256:"+digest {
		t.Errorf("the image is %s", image)
	}
	// The most pods that the autoscaler may start: with a smaller number, they would together allow
	// more than a limit while Redis is unavailable.
	most := object[*autoscalingv2.HorizontalPodAutoscaler](t, objects, "HorizontalPodAutoscaler/weir").Spec.MaxReplicas
	if settings := object[*corev1.ConfigMap](t, objects, "ConfigMap/weir").Data["weir.yaml"]; !strings.Contains(settings, fmt.Sprintf("\ninstances: %d\n", most)) {
		t.Errorf("with at most %d pods, the settings are\n%s", most, settings)
	}
	text, err := os.ReadFile("../prometheus/weir-rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := yaml.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	if got := object[*PrometheusRule](t, objects, "PrometheusRule/weir").Spec; len(want) == 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("the rules are\n%v\nwant\n%v", got, want)
	}
}

// Kubernetes waits for a pod as long as weir may wait for requests, and for the streams of a gateway.
func TestGrace(t *testing.T) {
	for values, want := range map[string]int64{
		"tokens: {existingSecret: a}":                                                                      20,
		"tokens: {existingSecret: a}\nstreamGraceSeconds: 100":                                             20,
		"tokens: {existingSecret: a}\nmode: gateway\ngateway: {upstream: http://a}":                        70,
		"tokens: {existingSecret: a}\nmode: gateway\ngateway: {upstream: http://a}\ngraceSeconds: 80":      90,
		"tokens: {existingSecret: a}\nmode: gateway\ngateway: {upstream: http://a}\nstreamGraceSeconds: 7": 20,
	} {
		objects, err := render(t, values)
		if err != nil {
			t.Fatal(err)
		}
		if got := *object[*appsv1.Deployment](t, objects, "Deployment/weir").Spec.Template.Spec.TerminationGracePeriodSeconds; got != want {
			t.Errorf("%s: %d s, want %d", values, got, want)
		}
	}
	objects, err := render(t, cases["a gateway with secrets and rules that exist"])
	if err != nil {
		t.Fatal(err)
	}
	if settings := object[*corev1.ConfigMap](t, objects, "ConfigMap/weir").Data["weir.yaml"]; !strings.Contains(settings, "\nstream_grace: 60s\n") {
		t.Errorf("the settings are\n%s", settings)
	}
}
