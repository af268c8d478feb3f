package helm

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/strvals"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// guide is docs/guides/kubernetes.md.
func guide(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/guides/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// guideValues are the values in the guide, block by block.
func guideValues(t *testing.T) (blocks []string) {
	for _, block := range regexp.MustCompile(`(?m)^    (?:store|tls|networkPolicy):\n(?:      .*\n?)+`).FindAllString(guide(t), -1) {
		blocks = append(blocks, strings.ReplaceAll("\n"+block, "\n    ", "\n"))
	}
	return blocks
}

// Each value that the guide sets exists, and the chart can be rendered with all of a command.
func TestDocs(t *testing.T) {
	readme, err := os.ReadFile("weir/README.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	for _, command := range regexp.MustCompile(`(?m)^ {4,}helm (?:.*\\\n)*.*$`).FindAllString(guide(t)+string(readme), -1) {
		values := map[string]any{}
		if !strings.Contains(command, "tokens.content") { // they were given when it was installed
			values["tokens"] = map[string]any{"existingSecret": "tokens"}
		}
		for _, set := range regexp.MustCompile(`--set(-file)? (\S+)`).FindAllStringSubmatch(command, -1) {
			if err := strvals.ParseInto(set[2], values); err != nil {
				t.Errorf("%s: %v", set[0], err)
			}
		}
		text, err := yaml.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		commands++
		if _, err := render(t, string(text)); err != nil {
			t.Errorf("%s\n%v", command, err)
		}
	}
	for _, block := range guideValues(t) {
		commands++
		if _, err := render(t, "tokens: {existingSecret: tokens}\n"+block); err != nil {
			t.Errorf("%s\n%v", block, err)
		}
	}
	if commands != 12 {
		t.Errorf("%d commands and blocks were found, want 12", commands)
	}
}

// Issuer is what the guide uses of cert-manager's.
type Issuer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		SelfSigned *struct{} `json:"selfSigned"`
		CA         *struct {
			SecretName string `json:"secretName"`
		} `json:"ca"`
	} `json:"spec"`
}

// Certificate is what the guide uses of cert-manager's.
type Certificate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		SecretName  string          `json:"secretName"`
		IsCA        bool            `json:"isCA"`
		CommonName  string          `json:"commonName"`
		Duration    metav1.Duration `json:"duration"`
		DNSNames    []string        `json:"dnsNames"`
		IPAddresses []string        `json:"ipAddresses"`
		Usages      []string        `json:"usages"`
		PrivateKey  struct {
			Algorithm      string `json:"algorithm"`
			Size           int    `json:"size"`
			RotationPolicy string `json:"rotationPolicy"`
		} `json:"privateKey"`
		IssuerRef struct {
			Name string `json:"name"`
		} `json:"issuerRef"`
	} `json:"spec"`
}

// certificates are the Secrets that cert-manager makes of the objects in the guide; here, openssl does.
func certificates(t *testing.T) map[string]map[string]string {
	t.Helper()
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(guide(t))
	if block == nil {
		t.Fatal("the guide has no objects of cert-manager")
	}
	dir, secrets, issuers := t.TempDir(), map[string]map[string]string{}, map[string]string{}
	for _, text := range strings.Split(block[1], "---\n") {
		var head metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(text), &head); err != nil || head.APIVersion != "cert-manager.io/v1" {
			t.Fatalf("%v in\n%s", err, text)
		}
		o, err := decode(head.Kind, []byte(text))
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if issuer, is := o.(*Issuer); is {
			if issuer.Spec.CA != nil {
				issuers[issuer.Name] = issuer.Spec.CA.SecretName
			} else {
				issuers[issuer.Name] = "" // it signs itself
			}
			continue
		}
		c := o.(*Certificate).Spec
		ca, known := issuers[c.IssuerRef.Name]
		if !known || ca != "" && secrets[ca] == nil || c.PrivateKey.Algorithm != "ECDSA" || c.PrivateKey.Size != 256 {
			t.Fatalf("there is no such issuer, or key, in\n%s", text)
		}
		file := func(name string) string { return filepath.Join(dir, name) }
		args := []string{"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-days", "1", "-subj", "/CN=" + c.CommonName,
			"-keyout", file(c.SecretName + ".key"), "-out", file(c.SecretName + ".crt")}
		if !c.IsCA {
			var names, usages []string
			for _, name := range c.DNSNames {
				names = append(names, "DNS:"+name)
			}
			for _, ip := range c.IPAddresses {
				names = append(names, "IP:"+ip)
			}
			for _, usage := range c.Usages {
				if usage != "digital signature" {
					usages = append(usages, map[string]string{"server auth": "serverAuth", "client auth": "clientAuth"}[usage]) // openssl knows no other
				}
			}
			args = append(args, "-CA", file(ca+".crt"), "-CAkey", file(ca+".key"), "-addext", "basicConstraints=critical,CA:false", "-addext", "keyUsage=critical,digitalSignature",
				"-addext", "subjectAltName="+strings.Join(names, ","), "-addext", "extendedKeyUsage="+strings.Join(usages, ","))
		}
		if out, err := exec.Command("openssl", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		secret := map[string]string{}
		for key, name := range map[string]string{"tls.crt": c.SecretName + ".crt", "tls.key": c.SecretName + ".key", "ca.crt": cmp.Or(ca, c.SecretName) + ".crt"} {
			content, err := os.ReadFile(file(name))
			if err != nil {
				t.Fatal(err)
			}
			secret[key] = string(content)
		}
		secrets[c.SecretName] = secret
	}
	return secrets
}

// follow runs the commands that Helm prints, and, with TLS, those of the guide, with the files of a client.
func (p *pod) follow(t *testing.T, secret map[string]string) {
	t.Helper()
	dir, text := t.TempDir(), string(p.objects["NOTES"])
	want := []string{`"allowed":true`}
	if p.scheme == "https" {
		_, section, _ := strings.Cut(guide(t), "\n## Dashboard with TLS\n")
		section, _, _ = strings.Cut(section, "\n## ")
		text += section
		want = append(want, `"rules":`, "denied", "weir.p12")
	}
	for name, content := range secret {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script := "set -e\n"
	for _, command := range regexp.MustCompile(`(?m)^ +((?:curl|WEIR_TOKEN=|openssl).*)$`).FindAllStringSubmatch(text, -1) {
		script += strings.NewReplacer("curl ", "curl --connect-to weir.limits.svc:8080:"+p.address+" ", "-export ", "-export -passout pass: ").Replace(p.local(command[1])) + "\n"
	}
	cmd := exec.Command("sh", "-c", script+"ls -x")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "WEIR_ADMIN_TOKEN=0123456789abcdef", "WEIR_TOKEN=0123456789abcdef", "PATH="+binDir+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", script, err, out)
		return
	}
	for _, part := range want {
		if !strings.Contains(string(out), part) {
			t.Errorf("%s: there is no %s in\n%s", script, part, out)
		}
	}
}
