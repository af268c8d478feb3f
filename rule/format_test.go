package rule_test

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/weirhq/weir/rule"
	"pgregory.net/rapid"
)

// Whatever a set says, it says the same after it was written and read, in either
// notation, and is written in one way only.
func TestWhatIsWrittenIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := drawSet(t)
		for name, write := range map[string]func(*rule.Set) []byte{"set.yaml": rule.Format, "set.json": rule.ToJSON} {
			text := write(set)
			back, problems := rule.Parse(name, text)
			if err := problems.Err(); err != nil {
				t.Fatalf("%s\n%s", problems, text)
			}
			if !reflect.DeepEqual(set, back) {
				t.Fatalf("%s: read back as\n%#v\nwant\n%#v\n%s", name, back, set, text)
			}
			if again := write(back); string(again) != string(text) {
				t.Fatalf("%s: written again as\n%s\nwas\n%s", name, again, text)
			}
		}
		if _, err := rule.Compile(set, rule.Options{}); err != nil {
			t.Fatalf("%v\n%s", err, rule.Format(set))
		}
		for i := range set.Rules {
			back, problems := rule.ParseRule("", rule.RuleToJSON(&set.Rules[i]))
			if back == nil || !reflect.DeepEqual(&set.Rules[i], back) {
				t.Fatalf("%v: read back as %#v, want %#v", problems, back, set.Rules[i])
			}
		}
	})
}

// json.Marshal and Unmarshal use the same notation.
func TestJSONMethods(t *testing.T) {
	const text = `{"rules":[{"id":"a","key":["ip","header:X-Tenant"],"limit":"5/1m","tiers":{"pro":{"limit":"6/1m","burst":9}},"mode":"shadow"}],"exempt":{"ip":["10.0.0.0/8"]}}`
	var set rule.Set
	if err := json.Unmarshal([]byte(text), &set); err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(set); err != nil || string(got) != text {
		t.Errorf("got %s, %v; want %s", got, err, text)
	}
	var one rule.Rule
	if err := json.Unmarshal([]byte(`{"id":"a","key":"ip","limit":"5/1m"}`), &one); err != nil || one.ID != "a" {
		t.Errorf("got %+v, %v", one, err)
	}
	if got, err := json.Marshal(one); err != nil || string(got) != `{"id":"a","key":"ip","limit":"5/1m"}` {
		t.Errorf("got %s, %v", got, err)
	}
	for _, wrong := range []string{`{"id":"a"}`, `[]`, `{"id":"a","key":"ip","limit":"5/1m","x":1}`} {
		if err := json.Unmarshal([]byte(wrong), &one); err == nil {
			t.Errorf("%s was read as a rule", wrong)
		}
		if err := json.Unmarshal([]byte(`{"rules":[`+wrong+`]}`), &set); err == nil {
			t.Errorf("%s was read in a set", wrong)
		}
	}
}

// A set that was made in Go gets what Parse would say.
func TestValidate(t *testing.T) {
	set := &rule.Set{Rules: []rule.Rule{{ID: "a", Key: []rule.Source{{Kind: rule.User}}, Mode: 7, Cost: 1, Deny: rule.Deny{Status: 429}}}}
	problems := rule.Validate("set", set)
	if got := problems.String(); !strings.Contains(got, `mode: "Mode(7)" is unknown`) || !strings.Contains(got, "limit: required") {
		t.Errorf("got %s", got)
	}
	set.Rules[0].Mode = rule.Shadow
	set.Rules[0].Quota = rule.Quota{Rates: []rule.Rate{{N: 5, Period: 1e9}}}
	if problems := rule.Validate("set", set); len(problems) > 0 {
		t.Errorf("got %s", problems)
	}
}

func exampleFiles(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("../examples/rules/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return files
}
