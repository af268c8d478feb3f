package replay

import (
	"encoding/json"
	"testing"
)

// fuzz lets a parser read anything. It never panics, an entry has a time within
// reason, and reading the line does not reach beyond it.
func fuzz(f *testing.F, format Format, seeds ...string) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	usual := parser(f, format, Fields{})
	asked := parser(f, format, Fields{IP: "3", Path: "5", Attributes: map[string]string{"a": "2"}, Hop: 2})
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, p := range []*Parser{usual, asked} {
			room := append(append([]byte{}, line...), "beyond"...)
			var e Entry
			if err := p.Parse(room[:len(line):len(line)], &e); err == nil {
				if e.At < 0 || e.At >= latest*million || len(e.Extra) != len(p.Extra()) {
					t.Errorf("%q is %+v", line, e)
				}
				if e.Path != "" && e.Path[0] != '/' {
					t.Errorf("%q has the path %q", line, e.Path)
				}
			}
			if string(room[len(line):]) != "beyond" {
				t.Errorf("%q was left", line)
			}
		}
	})
}

func FuzzCombined(f *testing.F) {
	fuzz(f, Combined,
		`203.0.113.7 - alice [15/Nov/2026:10:30:15 +0000] "GET /a?b=c HTTP/1.1" 200 5 "-" "\x22\\\"" 0.250`,
		`a - - [] "" "`, `- - - [15/Nov/2026:10:30:15] "GET http://x/ HTTP/1.1"`)
}

func FuzzEnvoy(f *testing.F) {
	fuzz(f, Envoy,
		`[2026-11-15T10:30:15.250Z] "GET /a HTTP/1.1" 200 - 0 154 226 100 "10.0.35.28,203.0.113.7" "ua" "id" "host" "tcp://10.0.2.1:80"`,
		`[1794738615.25] "x`, `[[]]`)
}

func FuzzJSON(f *testing.F) {
	fuzz(f, JSON,
		`{"ts":1794738615.5,"request":{"client_ip":"203.0.113.7","uri":"/a","headers":{"User-Agent":["\u00e4"]}},"duration":0.5}`,
		`{"time":"2026-11-15T10:30:15Z","request":"GET / HTTP/1.1","a":[{},[],null,true,-1e9]}`, `{"\ud83d\ude00":"\x4`)
}

// What the library takes for an object, this package does not take for a broken one.
func FuzzJSONAgreesWithTheLibrary(f *testing.F) {
	f.Add([]byte(`{"time":1794738615,"a":{"b":[1,"\n"]}}`))
	p := parser(f, JSON, Fields{})
	f.Fuzz(func(t *testing.T, line []byte) {
		var object map[string]any
		if json.Unmarshal(line, &object) != nil || object == nil {
			return
		}
		var e Entry
		if err := p.Parse(append([]byte{}, line...), &e); err == errJSON {
			t.Errorf("%q: %v", line, err)
		}
	})
}
