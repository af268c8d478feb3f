package httpapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// agree fails unless quick reads what the library reads, or leaves it alone.
func agree(t interface{ Fatalf(string, ...any) }, body string) bool {
	var quick, slow CheckRequest
	if !quick.quick([]byte(body), nil) {
		return false
	}
	if p := decode([]byte(body), &slow); p != nil {
		t.Fatalf("%s was read, and is wrong: %s", body, p)
	}
	if !reflect.DeepEqual(quick, slow) {
		t.Fatalf("%s is %+v, want %+v", body, quick, slow)
	}
	return true
}

func TestQuick(t *testing.T) {
	for _, body := range []string{
		ordinary, `{}`, " {\t} \r\n", `{"ip":""}`, `{"cost":0}`, `{ "cost" : 999999999999999999 , "peek" : false }`, `{"peek":true}`,
		`{"cost":{}}`, `{"cost":{"tokens":700, "bytes" : 0},"charge":"always"}`,
		`{"headers":{}}`, `{"attributes":{"":""},"cookies":{"a":"b"}}`, "{\"user\":\"\x7f\"}",
	} {
		if !agree(t, body) {
			t.Errorf("%s is left to the library", body)
		}
	}
	for _, body := range []string{
		``, `{`, `{}}`, `{}x`, `{,}`, `{"ip":"1",}`, `{"ip""1"}`, `{"ip":1}`, `{"IP":"1"}`, `{"ip":"1","ip":"2"}`, `{"ip":null}`, `{"user":"é"}`,
		`{"user":"\u0041"}`, "{\"user\":\"\n\"}", `{"cost":01}`, `{"cost":-1}`, `{"cost":1.0}`, `{"cost":1e3}`, `{"cost":9999999999999999999}`, `{"cost":}`,
		`{"cost":{"a":1,"a":2}}`, `{"cost":{"a":-1}}`, `{"cost":[1]}`, `{"cost":{"a":"1"}}`, `{"ttl_ms":1}`, `{"peek":tru}`, `{"peek":truely}`, `{"headers":{"a":1}}`, `{"headers":null}`, `{"headers":{"a":"b"}`, `{"x":1}`, `{"ip":"1`, `[]`, `{"ip":"1"}{"ip":"2"}`, `{"query":{"a":"1","a":"2"}}`,
	} {
		if agree(t, body) {
			t.Errorf("%s is not plain", body)
		}
	}
}

// A name is there once, in its own letters, in whatever object it stands.
func TestStrict(t *testing.T) {
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprintf(`"n%d":"x"`, i)
	}
	s := keptInMemory(t, Options{})
	for _, c := range []struct{ route, body, field string }{
		{"POST /v1/check", `{"ip":"192.0.2.1","ip":"192.0.2.2"}`, "ip"},
		{"POST /v1/check", `{"ip":"192.0.2.1","\u0069p":"192.0.2.2"}`, "ip"},
		{"POST /v1/check", `{"IP":"192.0.2.1"}`, "IP"},
		{"POST /v1/check", `{"ip":"192.0.2.1","Ip":"192.0.2.2"}`, "Ip"},
		{"POST /v1/check", `{"user":"a","U\u017fer":"b"}`, "Uſer"},
		{"POST /v1/check", `{"peek" : true , "peek" : false}`, "peek"},
		{"POST /v1/check", `{"headers":{"X-Tenant":"a","X-Tenant":"b"}}`, "X-Tenant"},
		{"POST /v1/check", `{"headers":{},"headers":{"X-Tenant":"b"}}`, "headers"},
		{"POST /v1/check", `{"headers":{` + strings.Join(many, ",") + `,"n99":"y"}}`, "n99"},
		{"POST /v1/counters/add", `{"add":[{"name":"a","name":"b"}]}`, "name"},
		{"POST /v1/counters/add", `{"add":[{"name":"a"},{"Name":"b"}]}`, "Name"},
		{"POST /v1/queues/mail/push", `{"payload":"a","Payload":"b"}`, "Payload"},
		{"POST /v1/rules/rollback", `{"version":1,"version":2}`, "version"},
		{"POST /v1/simulate", `{"limits":["1/1s"],"limits":["2/1s"]}`, "limits"},
	} {
		r := s.call(c.route, c.body, "If-Match: *")
		var p Problem
		if err := json.Unmarshal(r.body, &p); err != nil || r.StatusCode != 400 || p.Field != c.field {
			t.Errorf("%s %.80s: %d %s, want 400 and the field %s", c.route, c.body, r.StatusCode, r.body, c.field)
		}
	}
	for _, body := range []string{
		`{"headers":{"x-tenant":"a","cookie":"b"},"query":{"ip":"1","IP":"2"},"attributes":{"a":"\"}{[","b":"é"}}`, ` { "headers" : { } , "cost" : 1 , "peek" : false } `,
	} {
		s.call("POST /v1/check", body).want(t, 200, nil)
	}
}

// What a program in Go sends is plain, unless its values are not.
func TestQuickReadsWhatIsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-zA-Z0-9 ./:_=|-]{0,12}`)
		texts := rapid.MapOfN(text, text, 0, 3)
		q := CheckRequest{
			IP: text.Draw(t, "ip"), User: text.Draw(t, "user"), APIKey: text.Draw(t, "api_key"), Tier: text.Draw(t, "tier"), Priority: text.Draw(t, "priority"),
			Method: text.Draw(t, "method"), Host: text.Draw(t, "host"), Path: text.Draw(t, "path"),
			Headers: texts.Draw(t, "headers"), Cookies: texts.Draw(t, "cookies"), Query: texts.Draw(t, "query"), Attributes: texts.Draw(t, "attributes"),
			Cost: Amount{Units: rapid.Int64Range(0, 1<<50).Draw(t, "cost")}, Peek: rapid.Bool().Draw(t, "peek"),
		}
		if rapid.Bool().Draw(t, "by unit") {
			q.Cost = Amount{ByUnit: rapid.MapOfN(text, rapid.Int64Range(0, 1<<50), 0, 3).Draw(t, "costs")}
		}
		q.Charge = text.Draw(t, "charge")
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
