package httpapi

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// agree fails unless quick reads what the library reads, or leaves it alone.
func agree(t interface{ Fatalf(string, ...any) }, body string) bool {
	var quick, slow CheckRequest
	if !quick.quick(body) {
		return false
	}
	if p := decode([]byte(body), &slow, checkFields); p != nil {
		t.Fatalf("%s was read, and is wrong: %s", body, p.Detail)
	}
	if !reflect.DeepEqual(quick, slow) {
		t.Fatalf("%s is %+v, want %+v", body, quick, slow)
	}
	return true
}

func TestQuick(t *testing.T) {
	for _, body := range []string{
		ordinary, `{}`, " {\t} \r\n", `{"ip":""}`, `{"cost":0}`, `{ "cost" : 999999999999999999 , "peek" : false }`, `{"peek":true}`,
		`{"headers":{}}`, `{"query":{"a":"1","a":"2"}}`, `{"attributes":{"":""},"cookies":{"a":"b"}}`, "{\"user\":\"\x7f\"}",
	} {
		if !agree(t, body) {
			t.Errorf("%s is left to the library", body)
		}
	}
	for _, body := range []string{
		``, `{`, `{}}`, `{}x`, `{,}`, `{"ip":"1",}`, `{"ip""1"}`, `{"ip":1}`, `{"IP":"1"}`, `{"ip":"1","ip":"2"}`, `{"ip":null}`, `{"user":"é"}`,
		`{"user":"\u0041"}`, "{\"user\":\"\n\"}", `{"cost":01}`, `{"cost":-1}`, `{"cost":1.0}`, `{"cost":1e3}`, `{"cost":9999999999999999999}`, `{"cost":}`,
		`{"peek":tru}`, `{"peek":truely}`, `{"headers":{"a":1}}`, `{"headers":null}`, `{"headers":{"a":"b"}`, `{"x":1}`, `{"ip":"1`, `[]`, `{"ip":"1"}{"ip":"2"}`,
	} {
		if agree(t, body) {
			t.Errorf("%s is not plain", body)
		}
	}
}

// What a program in Go sends is plain, unless its values are not.
func TestQuickReadsWhatIsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-zA-Z0-9 ./:_=|-]{0,12}`)
		texts := rapid.MapOfN(text, text, 0, 3)
		q := CheckRequest{
			IP: text.Draw(t, "ip"), User: text.Draw(t, "user"), APIKey: text.Draw(t, "api_key"), Tier: text.Draw(t, "tier"),
			Method: text.Draw(t, "method"), Host: text.Draw(t, "host"), Path: text.Draw(t, "path"),
			Headers: texts.Draw(t, "headers"), Cookies: texts.Draw(t, "cookies"), Query: texts.Draw(t, "query"), Attributes: texts.Draw(t, "attributes"),
			Cost: rapid.Int64Range(0, 1<<50).Draw(t, "cost"), Peek: rapid.Bool().Draw(t, "peek"),
		}
		body, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		if !agree(t, string(body)) {
			t.Fatalf("%s is left to the library", body)
		}
	})
}

func FuzzQuick(f *testing.F) {
	for _, seed := range []string{ordinary, `{"cost":12,"peek":true,"query":{"a":"b"}}`, ` { "ip" : "::1" } `, `{"ip":"1","IP":"2"}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) { agree(t, body) })
}
