package helm

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the plain manifests in ../kubernetes again")

const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// cases are values that a user may choose.
var cases = map[string]string{
	"one replica in memory": `
tokens: {content: "alice admin 0123456789abcdef"}`,

	"everything": `
replicas: 3
image: {repository: registry.example.com/weir, tag: 0.1.0, digest: "sha256:` + digest + `", pullPolicy: Always}
imagePullSecrets: [{name: pull}]
store: {url: "redis://:pa\"ss@redis:6379"}
tokens: {content: "alice admin 0123456789abcdef\ngrafana read fedcba9876543210"}
rules:
  content: |
    rules:
      - {id: api, key: user, limit: 100/1m}
envoy: {config: {edge.yaml: "domain: edge\ndescriptors: [{key: path, rate_limit: {unit: minute, requests_per_unit: 100}}]\n"}}
settings: {trusted_proxies: [10.0.0.0/8], log_level: debug}
service: {type: LoadBalancer, annotations: {a: b}}
autoscaling: {enabled: true}
networkPolicy: {from: [{namespaceSelector: {}}], to: [{podSelector: {matchLabels: {app: redis}}}]}
serviceMonitor: {enabled: true, labels: {release: prometheus}}
prometheusRule: {enabled: true, labels: {release: prometheus}}
serviceAccount: {name: limits, annotations: {a: b}}
podAnnotations: {a: b}
podLabels: {c: d}
nodeSelector: {disk: fast}
tolerations: [{key: a, operator: Exists}]
affinity: {nodeAffinity: {}}
priorityClassName: high
extraEnv: [{name: WEIR_TRACES, value: "http://collector:4318"}]
extraVolumes: [{name: certs, secret: {secretName: certs}}]
extraVolumeMounts: [{name: certs, mountPath: /certs}]`,

	"a gateway with secrets and rules that exist": `
mode: gateway
gateway: {upstream: "http://shop:9000"}
replicas: 2
store: {existingSecret: redis}
tokens: {existingSecret: tokens}
rules: {inRedis: true}
networkPolicy: {gatewayFrom: [{ipBlock: {cidr: 10.0.0.0/8}}]}
serviceAccount: {create: false}
podDisruptionBudget: {enabled: false}
drainSeconds: 0`,

	"TLS and rules that exist": `
tokens: {existingSecret: tokens}
rules: {existingConfigMap: limits}
tls: {existingSecret: api, requireClientCert: true, probeSecret: probe}
serviceMonitor: {enabled: true}
resources: {limits: null}`,
}

// loaded is the chart, read once.
var loaded = sync.OnceValues(func() (*chart.Chart, error) { return loader.Load("weir") })

// render returns the objects of the chart, by kind and name, and what Helm prints, as NOTES.
func render(t testing.TB, values string) (map[string][]byte, error) {
	t.Helper()
	return renderRevision(t, values, 1, nil)
}

// renderRevision renders a revision of the release weir. Without a cluster, it does so as helm template does.
func renderRevision(t testing.TB, values string, revision int, cluster *rest.Config) (map[string][]byte, error) {
	t.Helper()
	c, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	return renderChart(t, c, values, revision, cluster)
}

func renderChart(t testing.TB, c *chart.Chart, values string, revision int, cluster *rest.Config) (map[string][]byte, error) {
	t.Helper()
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(c, given, chartutil.ReleaseOptions{Name: "weir", Namespace: "limits", Revision: revision, IsInstall: revision == 1, IsUpgrade: revision > 1}, nil)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, all)
	if cluster != nil {
		files, err = engine.RenderWithClient(c, all, cluster)
	}
	if err != nil {
		return nil, err
	}
	objects := map[string][]byte{}
	for name, text := range files {
		if strings.HasSuffix(name, "/NOTES.txt") {
			objects["NOTES"] = []byte(text)
		}
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		for _, part := range strings.Split(text, "\n---\n") {
			if strings.TrimSpace(part) == "" {
				continue
			}
			var head metav1.PartialObjectMetadata
			if err := yaml.Unmarshal([]byte(part), &head); err != nil {
				t.Fatalf("%s: %v in\n%s", name, err, part)
			}
			objects[head.Kind+"/"+head.Name] = []byte(part)
		}
	}
	return objects, nil
}

// ServiceMonitor is what the chart uses of the Prometheus operator's.
type ServiceMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		JobLabel  string               `json:"jobLabel"`
		Selector  metav1.LabelSelector `json:"selector"`
		Endpoints []struct {
			Port      string `json:"port"`
			Path      string `json:"path"`
			Interval  string `json:"interval"`
			Scheme    string `json:"scheme"`
			TLSConfig *struct {
				ServerName string `json:"serverName"`
				CA, Cert   *struct {
					Secret *corev1.SecretKeySelector `json:"secret"`
				}
				KeySecret *corev1.SecretKeySelector `json:"keySecret"`
			} `json:"tlsConfig"`
		} `json:"endpoints"`
	} `json:"spec"`
}

// PrometheusRule is what the chart uses of the Prometheus operator's.
type PrometheusRule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              map[string]any `json:"spec"`
}

// object is one of those that were rendered.
func object[T any](t testing.TB, objects map[string][]byte, id string) T {
	t.Helper()
	kind, _, _ := strings.Cut(id, "/")
	o, err := decode(kind, objects[id])
	if err != nil || objects[id] == nil {
		t.Fatalf("%s: %v in\n%s", id, err, objects[id])
	}
	return o.(T)
}

// decode decodes an object; a field that Kubernetes does not know is an error.
func decode(kind string, text []byte) (any, error) {
	objects := map[string]any{
		"ConfigMap": new(corev1.ConfigMap), "Deployment": new(appsv1.Deployment), "HorizontalPodAutoscaler": new(autoscalingv2.HorizontalPodAutoscaler),
		"NetworkPolicy": new(networkingv1.NetworkPolicy), "PodDisruptionBudget": new(policyv1.PodDisruptionBudget), "Secret": new(corev1.Secret),
		"Service": new(corev1.Service), "ServiceAccount": new(corev1.ServiceAccount), "ServiceMonitor": new(ServiceMonitor),
		"PrometheusRule": new(PrometheusRule), "Issuer": new(Issuer), "Certificate": new(Certificate),
	}
	return objects[kind], yaml.UnmarshalStrict(text, objects[kind])
}

func TestObjects(t *testing.T) {
	want := map[string]string{
		"one replica in memory": "ConfigMap/weir ConfigMap/weir-rules Deployment/weir NetworkPolicy/weir Secret/weir Service/weir ServiceAccount/weir",
		"everything": "ConfigMap/weir ConfigMap/weir-envoy ConfigMap/weir-rules Deployment/weir HorizontalPodAutoscaler/weir NetworkPolicy/weir " +
			"PodDisruptionBudget/weir PrometheusRule/weir Secret/weir Service/weir ServiceAccount/limits ServiceMonitor/weir",
		"a gateway with secrets and rules that exist": "ConfigMap/weir Deployment/weir NetworkPolicy/weir Service/weir Service/weir-gateway",
		"TLS and rules that exist":                    "ConfigMap/weir Deployment/weir NetworkPolicy/weir Service/weir ServiceAccount/weir ServiceMonitor/weir",
	}
	for name, values := range cases {
		objects, err := render(t, values)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		delete(objects, "NOTES")
		if got := strings.Join(slices.Sorted(maps.Keys(objects)), " "); got != want[name] {
			t.Errorf("%s: it has %s, want %s", name, got, want[name])
		}
		for id, text := range objects {
			kind, _, _ := strings.Cut(id, "/")
			if _, err := decode(kind, text); err != nil {
				t.Errorf("%s: %s: %v in\n%s", name, id, err, text)
			}
		}
		consistent(t, name, objects)
	}
}

// consistent checks what refers to something else.
func consistent(t *testing.T, name string, objects map[string][]byte) {
	t.Helper()
	d := object[*appsv1.Deployment](t, objects, "Deployment/weir")
	pod := d.Spec.Template
	for key, value := range d.Spec.Selector.MatchLabels {
		if pod.Labels[key] != value {
			t.Errorf("%s: the Deployment does not select its own pods: %s", name, key)
		}
	}
	for id := range objects {
		if !strings.HasPrefix(id, "Service/") {
			continue
		}
		s := object[*corev1.Service](t, objects, id)
		for key, value := range s.Spec.Selector {
			if pod.Labels[key] != value {
				t.Errorf("%s: %s does not select the pods: %s", name, id, key)
			}
		}
		for _, p := range s.Spec.Ports {
			if !slices.ContainsFunc(pod.Spec.Containers[0].Ports, func(c corev1.ContainerPort) bool { return c.Name == p.TargetPort.String() }) {
				t.Errorf("%s: %s has the port %s, and the pod does not", name, id, p.TargetPort.String())
			}
		}
	}
	if objects["ServiceMonitor/weir"] != nil {
		label := object[*ServiceMonitor](t, objects, "ServiceMonitor/weir").Spec.JobLabel
		if job := object[*corev1.Service](t, objects, "Service/weir").Labels[label]; job != "weir" {
			t.Errorf("%s: Prometheus calls the job %q, and the alert rules expect weir", name, job)
		}
	}
	for _, v := range pod.Spec.Volumes {
		if v.ConfigMap != nil && objects["ConfigMap/"+v.ConfigMap.Name] == nil && v.ConfigMap.Name != "limits" { // which exists
			t.Errorf("%s: there is no ConfigMap %s", name, v.ConfigMap.Name)
		}
	}
	// Every file that the settings name is in a volume, and the directory for data can be written.
	var settings map[string]any
	if err := yaml.Unmarshal([]byte(object[*corev1.ConfigMap](t, objects, "ConfigMap/weir").Data["weir.yaml"]), &settings); err != nil {
		t.Fatal(err)
	}
	for key, value := range settings {
		path, ok := value.(string)
		if !ok || !strings.HasPrefix(path, "/") {
			continue
		}
		i := slices.IndexFunc(pod.Spec.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool {
			return path == m.MountPath || strings.HasPrefix(path, m.MountPath+"/")
		})
		if i < 0 || pod.Spec.Containers[0].VolumeMounts[i].ReadOnly == (key == "data") {
			t.Errorf("%s: %s: %s has no volume, or one that cannot be used so", name, key, path)
		}
	}
	c := pod.Spec.Containers[0].SecurityContext
	if !*pod.Spec.SecurityContext.RunAsNonRoot || !*c.ReadOnlyRootFilesystem || *c.AllowPrivilegeEscalation || *pod.Spec.EnableServiceLinks || *pod.Spec.AutomountServiceAccountToken {
		t.Errorf("%s: the pod may do more than it has to", name)
	}
}

// What cannot work is said before it is installed.
func TestMistakes(t *testing.T) {
	const tokens = "tokens: {content: a admin 0123456789abcdef}\n"
	for values, want := range map[string]string{
		"":                                                                    "tokens: set tokens.content",
		tokens + "replicas: 2":                                                "several replicas must share a Redis",
		tokens + "autoscaling: {enabled: true}":                               "several replicas must share a Redis",
		tokens + "rules: {inRedis: true}":                                     "there is no Redis",
		tokens + "settings: {store: redis://a}":                               "settings.store",
		tokens + "settings: {http: 0.0.0.0:9090}":                             `settings.http: "0.0.0.0:9090" is not where the Service`,
		tokens + "settings: {grpc: 127.0.0.1:8081}":                           "settings.grpc",
		tokens + "settings: {listen: ':80000'}":                               "settings.listen",
		tokens + "store: {url: a, existingSecret: b}":                         "store.existingSecret: store.url is set, too",
		"tokens: {content: a admin 0123456789abcdef, existingSecret: b}":      "tokens.existingSecret: tokens.content is set, too",
		tokens + "rules: {content: 'rules: [{id: a}]', existingConfigMap: b}": "rules.existingConfigMap: rules.content is set, too",
		tokens + "store: {url: a}\nrules: {content: 'rules: [{id: a}]', inRedis: true}":          "rules.inRedis: rules.content is set, too",
		tokens + "store: {url: a}\nautoscaling: {enabled: true, minReplicas: 3, maxReplicas: 2}": "autoscaling.minReplicas: it is greater",
		tokens + "mode: gateway":                                                 "gateway.upstream",
		tokens + "mode: proxy":                                                   "mode",
		tokens + "replica: 2":                                                    "replica",
		tokens + "store: {uri: redis://a}":                                       "uri",
		tokens + "image: {pullPolicy: Sometimes}":                                "pullPolicy",
		tokens + "image: {digest: latest}":                                       "digest",
		tokens + "resources: {limits: {memory: a lot}}":                          `resources.limits.memory: "a lot" is invalid`,
		tokens + "resources: {limits: {memory: 1Mb}}":                            `resources.limits.memory: "1Mb" is invalid`,
		tokens + "tls: {requireClientCert: true}":                                "set tls.existingSecret",
		tokens + "tls: {existingSecret: a, requireClientCert: true}":             "tls.probeSecret",
		tokens + "settings: {tls_cert: a, tls_key: b, tls_client_ca: c}":         "tls.probeSecret",
		tokens + "tls: {existingSecret: a, probeSecret: b}":                      "tls.probeSecret",
		tokens + "tls: {existingSecret: a}\nsettings: {tls_cert: a}":             "choose one",
		tokens + "nameOverride: limits\nprometheusRule: {enabled: true}":         "the rules expect the job weir",
		tokens + "store: {url: a}\nrules: {inRedis: true, existingConfigMap: a}": "choose one",
	} {
		if _, err := render(t, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", values, err, want)
		}
	}
	if _, err := render(t, tokens+`settings: {http: "[::]:8080", grpc: ":8081", listen: null}`); err != nil {
		t.Error(err)
	}
	// Where there are no symbolic links, git writes a file with the path.
	c, err := loader.Load("weir")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(c.Files, func(f *chart.File) bool { return f.Name == "weir-rules.yaml" })
	c.Files[i].Data = []byte("../../prometheus/weir-rules.yaml")
	if _, err := renderChart(t, c, tokens+"prometheusRule: {enabled: true}", 1, nil); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("without symbolic links: %v", err)
	}
}

func TestLint(t *testing.T) {
	for name, values := range cases {
		given, err := chartutil.ReadValues([]byte(values))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range lint.All("weir", given, "limits", true).Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%s: %v", name, m)
			}
		}
	}
}

// The plain manifests are the chart's, for who does not use Helm.
func TestManifests(t *testing.T) {
	const file = "../kubernetes/weir.yaml"
	objects, err := render(t, `
replicas: 2
store: {url: "redis://redis:6379"}
tokens: {content: "admin admin REPLACE-ME-WITH-openssl-rand-hex-32\nshop check REPLACE-THIS-WITH-openssl-rand-hex-32"}
rules:
  content: |
    rules:
      - {id: api, match: {path: /api/**}, key: user, limit: 100/1m}
      - {id: login, match: {method: POST, path: /api/login}, key: ip, algorithm: sliding_log, limit: 5/1m, on_failure: local}
`)
	if err != nil {
		t.Fatal(err)
	}
	delete(objects, "NOTES")
	var b bytes.Buffer
	b.WriteString("# weir on Kubernetes: two instances that share the Redis at redis:6379. Replace the tokens before you\n# apply it. The chart in ../helm/weir makes this file, and has more to choose from.\n")
	for _, id := range slices.Sorted(maps.Keys(objects)) {
		for line := range strings.Lines("---\n" + strings.TrimSpace(string(objects[id])) + "\n") {
			if !strings.Contains(line, "helm.sh/chart") && !strings.Contains(line, "managed-by: Helm") {
				b.WriteString(line)
			}
		}
	}
	if *update {
		if err := os.MkdirAll("../kubernetes", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := os.ReadFile(file); err != nil || !bytes.Equal(kept, b.Bytes()) {
		t.Errorf("%s is out of date (%v); run go test -update in deploy/helm", file, err)
	}
}
