package notation

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseSettings(t *testing.T) {
	for text, want := range map[string][]Setting{
		"":           nil,
		" ; ":        nil,
		"mail=10/1s": {{Name: "mail", Value: "10/1s"}},
		" mail = 10/1s , capacity = 5 ; sms=1/1m": {
			{Name: "mail", Value: "10/1s", Options: []Option{{"capacity", "5"}}}, {Name: "sms", Value: "1/1m"},
		},
		"a=b=c": {{Name: "a", Value: "b=c"}},
	} {
		got, err := ParseSettings(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v %v, want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"mail":                       `"mail" is invalid; write name=value`,
		"=1":                         `"=1" is invalid; write name=value`,
		"mail=":                      `"mail=" is invalid; write name=value`,
		"mail=1/1s,":                 `"" is invalid; write name=value`,
		"mail=1/1s,x=1,x=2":          "sets x twice",
		strings.Repeat("a", 1<<17):   "more than 65536 characters",
		strings.Repeat("a=b;", 1001): "more than 1000",
	} {
		if _, err := ParseSettings(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: error %v, want %q", text, err, want)
		}
	}
}
