package rule_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weirhq/weir/rule"
)

func TestWordsAreReadBack(t *testing.T) {
	for _, m := range []rule.Mode{rule.Enforce, rule.Shadow, rule.Off} {
		if back, err := rule.ParseMode(m.String()); err != nil || back != m {
			t.Errorf("%s is read as %s, %v", m, back, err)
		}
	}
	for _, f := range []rule.Failure{rule.Open, rule.Closed, rule.Local} {
		if back, err := rule.ParseFailure(f.String()); err != nil || back != f {
			t.Errorf("%s is read as %s, %v", f, back, err)
		}
	}
	for _, text := range []string{"ip", "user", "api_key", "global", "header:X-Tenant", "cookie:a", "query:a:b", "attr:x y"} {
		if s, err := rule.ParseSource(text); err != nil || s.String() != text {
			t.Errorf("%s is read as %s, %v", text, s, err)
		}
	}
	for _, text := range []string{"100/1m", "1/90s", "3/1d", "7/1us"} {
		if r, err := rule.ParseRate(text); err != nil || r.String() != text {
			t.Errorf("%s is read as %s, %v", text, r, err)
		}
	}
	if s, err := rule.ParseSource("header:x-TENANT-id"); err != nil || s.Name != "X-Tenant-Id" {
		t.Errorf("got %v, %v", s, err)
	}
	got, err := json.Marshal([]any{rule.Shadow, rule.Local, rule.Source{Kind: rule.Header, Name: "A"}, rule.Warning, rule.Error})
	if err != nil || string(got) != `["shadow","local","header:A","warning","error"]` {
		t.Errorf("got %s, %v", got, err)
	}
	var back struct {
		Mode     rule.Mode
		Failure  rule.Failure
		Source   rule.Source
		Severity rule.Severity
	}
	if err := json.Unmarshal([]byte(`{"mode":"shadow","failure":"local","source":"header:a","severity":"warning"}`), &back); err != nil {
		t.Error(err)
	}
	if back.Mode != rule.Shadow || back.Failure != rule.Local || back.Source.Name != "A" || back.Severity != rule.Warning {
		t.Errorf("got %+v", back)
	}
	for _, wrong := range []string{`{"mode":"x"}`, `{"failure":"x"}`, `{"source":"x"}`, `{"severity":"x"}`} {
		if err := json.Unmarshal([]byte(wrong), &back); err == nil {
			t.Errorf("%s was read", wrong)
		}
	}
	if got := rule.Mode(9).String() + rule.Failure(9).String() + (rule.Source{Kind: 99}).String(); got != "Mode(9)Failure(9)SourceKind(99):" {
		t.Errorf("got %s", got)
	}
}

func TestWordsThatAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"": "unknown", "ips": `did you mean "ip"?`, "header": "needs a name", "header:": "needs a name", "header:a b": "is not a valid name for a header",
		"ip:x": "has no name", "attribute:x": `is called "attr:x" here`, "tenant:x": "use ip, user", "query:" + strings.Repeat("x", 200): "maximum is 100",
	} {
		if _, err := rule.ParseSource(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: got %v, want %q", text, err, want)
		}
	}
	if _, err := rule.ParseMode("Enforce"); err == nil || !strings.Contains(err.Error(), `did you mean "enforce"?`) {
		t.Errorf("got %v", err)
	}
}
