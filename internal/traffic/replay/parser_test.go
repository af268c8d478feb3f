package replay

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func parser(t testing.TB, format Format, fields Fields) *Parser {
	t.Helper()
	p, err := NewParser(format, fields)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// show writes an entry with what it has.
func show(p *Parser, e *Entry) string {
	var b strings.Builder
	b.WriteString(time.UnixMicro(e.At).UTC().Format("2006-01-02T15:04:05.999999Z"))
	part := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, " %s=%s", name, value)
		}
	}
	if e.IP.IsValid() {
		part("ip", e.IP.String())
	}
	part("user", e.User)
	part("api_key", e.APIKey)
	part("tier", e.Tier)
	part("method", e.Method)
	part("host", e.Host)
	part("path", e.Path)
	part("query", e.Query)
	for i, x := range p.Extra() {
		part(x.Name, e.Extra[i])
	}
	return b.String()
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, line, want string
		fields           Fields
	}{
		{"common", `203.0.113.7 - - [15/Nov/2026:10:30:15 +0100] "GET /a HTTP/1.1" 200 5`,
			"2026-11-15T09:30:15Z ip=203.0.113.7 method=GET path=/a", Fields{}},
		{"combined", `2001:db8::1 - alice [15/Nov/2026:10:30:15 +0000] "POST /a?b=c&d HTTP/2.0" 200 5 "https://x/" "curl/8 (x)"`,
			"2026-11-15T10:30:15Z ip=2001:db8::1 user=alice method=POST path=/a query=b=c&d User-Agent=curl/8 (x) Referer=https://x/", Fields{}},
		{"a request time of nginx", `203.0.113.7 - - [15/Nov/2026:10:30:15 +0000] "GET / HTTP/1.1" 200 5 "-" "-" 1.250`,
			"2026-11-15T10:30:13.75Z ip=203.0.113.7 method=GET path=/", Fields{}},
		{"microseconds of Apache are no seconds", `203.0.113.7 - - [15/Nov/2026:10:30:15 +0000] "GET / HTTP/1.1" 200 5 "-" "-" 1250`,
			"2026-11-15T10:30:15Z ip=203.0.113.7 method=GET path=/", Fields{}},
		{"seconds if somebody says so", `203.0.113.7 - - [15/Nov/2026:10:30:15 +0000] "GET / HTTP/1.1" 200 5 "-" "-" 2`,
			"2026-11-15T10:30:13Z ip=203.0.113.7 method=GET path=/", Fields{Duration: "10"}},
		{"escapes", `203.0.113.7 - - [15/Nov/2026:10:30:15 +0000] "GET /\x22a\"\\ HTTP/1.1" 200 5 "-" "\xe4\n\q\x"`,
			"2026-11-15T10:30:15Z ip=203.0.113.7 method=GET path=/\"a\"\\ User-Agent=\xe4\nqx", Fields{}},
		{"escapes of JSON", `203.0.113.7 - - [15/Nov/2026:10:30:15 +0000] "GET /\u0041\u00e4 HTTP/1.1" 200 5 "-" "a\b\f"`,
			"2026-11-15T10:30:15Z ip=203.0.113.7 method=GET path=/Aä User-Agent=a\b\f", Fields{}},
		{"no request", `203.0.113.7 - - [15/Nov/2026:10:30:15 +0000] "-" 408 0 "-" "-"`, "2026-11-15T10:30:15Z ip=203.0.113.7", Fields{}},
		{"nonsense for a request", `203.0.113.7 - - [15/Nov/2026:10:30:15 +0000] "\x16\x03\x01" 400 0 "-" "-"`, "2026-11-15T10:30:15Z ip=203.0.113.7", Fields{}},
		{"a path with spaces", `203.0.113.7 - - [15/Nov/2026:10:30:15 +0000] "GET /a b HTTP/1.1" 400 0`, "2026-11-15T10:30:15Z ip=203.0.113.7 method=GET path=/a b", Fields{}},
		{"asked as a proxy", `203.0.113.7 - - [15/Nov/2026:10:30:15 +0000] "GET http://example.com/a?b HTTP/1.1" 200 0`,
			"2026-11-15T10:30:15Z ip=203.0.113.7 method=GET host=example.com path=/a query=b", Fields{}},
		{"a tunnel", `203.0.113.7 - - [15/Nov/2026:10:30:15 +0000] "CONNECT example.com:443 HTTP/1.1" 200 0`, "2026-11-15T10:30:15Z ip=203.0.113.7 method=CONNECT", Fields{}},
		{"a name for an address", `client.example.com - - [15/Nov/2026:10:30:15 +0000] "GET / HTTP/1.1" 200 0`, "2026-11-15T10:30:15Z method=GET path=/", Fields{}},
		{"fields by number", `10.0.0.1 - - [15/Nov/2026:10:30:15 +0000] "GET / HTTP/1.1" 200 5 "-" "-" "203.0.113.9, 203.0.113.8" key1 pro`,
			"2026-11-15T10:30:15Z ip=203.0.113.8 api_key=key1 tier=pro method=GET path=/", Fields{IP: "10", APIKey: "11", Tier: "12"}},
		{"another hop", `10.0.0.1 - - [15/Nov/2026:10:30:15 +0000] "GET / HTTP/1.1" 200 5 "-" "-" "203.0.113.9, 203.0.113.8"`,
			"2026-11-15T10:30:15Z ip=203.0.113.9 method=GET path=/", Fields{IP: "10", Hop: 2}},
		{"a hop that is not there", `10.0.0.1 - - [15/Nov/2026:10:30:15 +0000] "GET / HTTP/1.1" 200 5 "-" "-" "203.0.113.9"`,
			"2026-11-15T10:30:15Z method=GET path=/", Fields{IP: "10", Hop: 2}},
		{"extras", `10.0.0.1 - bob [15/Nov/2026:10:30:15 +0000] "GET / HTTP/1.1" 200 5 "-" "-" t1 s1`,
			"2026-11-15T10:30:15Z ip=10.0.0.1 user=bob method=GET path=/ X-Tenant=t1 session=s1 who=bob",
			Fields{Headers: map[string]string{"x-tenant": "10"}, Cookies: map[string]string{"session": "11"}, Attributes: map[string]string{"who": "remote_user"}}},
		{"envoy", `[2026-11-15T10:30:15.250Z] "GET /a?b HTTP/1.1" 200 - 0 154 226 100 "10.0.35.28,203.0.113.7" "nsq2http" "cc21d9b0" "locations" "tcp://10.0.2.1:80"`,
			"2026-11-15T10:30:15.25Z ip=203.0.113.7 method=GET host=locations path=/a query=b User-Agent=nsq2http", Fields{}},
		{"nginx json", `{"time_iso8601":"2026-11-15T10:30:15+00:00","remote_addr":"203.0.113.7","remote_user":"-","request":"GET /a HTTP/1.1","status": 200,"request_time":"0.250","http_user_agent":"x\u00e4\ud83d\ude00\/"}`,
			"2026-11-15T10:30:14.75Z ip=203.0.113.7 method=GET path=/a User-Agent=xä😀/", Fields{}},
		{"nginx json with bytes", `{"msec":1794738615.250,"remote_addr":"203.0.113.7","request_method":"GET","request_uri":"/\x41","host":"h"}`,
			"2026-11-15T10:30:15.25Z ip=203.0.113.7 method=GET host=h path=/A", Fields{}},
		{"caddy", `{"level":"info","ts":1794738615.5241024,"logger":"http.log.access","request":{"remote_ip":"10.0.0.1","remote_port":"4","client_ip":"203.0.113.7","proto":"HTTP/2.0","method":"GET","host":"localhost","uri":"/a?b=c","headers":{"User-Agent":["curl/7","other"],"Deep":[[{"x":[1]}]]},"tls":{"resumed":false}},"user_id":"","duration":0.5,"status":200}`,
			"2026-11-15T10:30:15.024102Z ip=203.0.113.7 method=GET host=localhost path=/a query=b=c User-Agent=curl/7", Fields{}},
		{"traefik", `{"ClientHost":"203.0.113.7","ClientUsername":"-","Duration":1500000000,"RequestHost":"h","RequestMethod":"GET","RequestPath":"/a","StartUTC":"2026-11-15T10:30:15.123456789Z","time":"2026-11-15T10:30:17Z","request_User-Agent":"x"}`,
			"2026-11-15T10:30:15.123456Z ip=203.0.113.7 method=GET host=h path=/a User-Agent=x", Fields{}},
		{"envoy json", `{"start_time":"2026-11-15T10:30:15.250Z","method":"GET","path":"/a","authority":"h","downstream_remote_address":"203.0.113.7:4711","duration":226,"x_forwarded_for":null}`,
			"2026-11-15T10:30:15.25Z ip=203.0.113.7 method=GET host=h path=/a", Fields{}},
		{"a duration in an unknown unit", `{"timestamp":"2026-11-15T10:30:15Z","duration":12.5,"ip":"[2001:db8::1]:80"}`,
			"2026-11-15T10:30:15Z ip=2001:db8::1", Fields{}},
		{"json with names", `{"when": {"at": 1794738615250}, "who":["203.0.113.7"],"u":{"id":"alice","tier":"pro"},"k":42,"a":{"b":{"c":"post"}},"ms":0.25}`,
			"2026-11-15T10:30:15Z ip=203.0.113.7 user=alice api_key=42 tier=pro action=post",
			Fields{Time: "when.at", Duration: "ms", IP: "who", User: "u.id", Tier: "u.tier", APIKey: "k", Attributes: map[string]string{"action": "a.b.c"}}},
		{"a zone after a space", `{"time":"2026-11-15 10:30:15,5 -0100","ip":"::ffff:1.2.3.4"}`, "2026-11-15T11:30:15.5Z ip=::ffff:1.2.3.4", Fields{}},
		{"an address in brackets", `{"time":"2026-11-15 10:30:15,5","ip":"[fe80::1%eth0]"}`, "2026-11-15T10:30:15.5Z ip=fe80::1", Fields{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := parser(t, Auto, c.fields)
			var e Entry
			err := p.Parse([]byte(c.line), &e)
			if err != nil {
				t.Fatal(err)
			}
			if got := show(p, &e); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	for line, want := range map[string]string{
		"":                            "no time;",
		"   ":                         "no time;",
		"hello world":                 "no time;",
		`1.2.3.4 - - [15/Nov/2026`:    "a bracket is not closed",
		`1.2.3.4 - - [yesterday] "x"`: "invalid time",
		`1.2.3.4 - - [15/Nov/2026:10:30:15 +0000] "GET / HT`: "a quote is not closed",
		`1.2.3.4 - - [15/Nov/2026:10:30:15 +0000] "GET / \`:  "a quote is not closed",
		`1.2.3.4 - - [15/Nov/2026:25:30:15 +0000] "GET /"`:   "invalid time",
		`1.2.3.4 - - [32/Nov/2026:10:30:15 +0000] "GET /"`:   "invalid time",
		`1.2.3.4 - - [15/Nov/2026:10:30:15 CET] "GET /"`:     "invalid time",
		`1.2.3.4 - - [15/Nov/1926:10:30:15 +0000] "GET /"`:   "invalid time",
		`1.2.3.4 - - [15/Nov/9926:10:30:15 +0000] "GET /"`:   "invalid time",
		`{`:                                "not a JSON object",
		`{}`:                               "no time;",
		`{"time":"2026-11-15T10:30:1`:      "not a JSON object",
		`{"time":1794738615} x`:            "not a JSON object",
		`{"time":1794738615`:               "not a JSON object",
		`{"time":}`:                        "not a JSON object",
		`{"time" 1}`:                       "not a JSON object",
		`{time:1}`:                         "not a JSON object",
		`{"a":[1 2]}`:                      "not a JSON object",
		`{"a":"\u12"}`:                     "not a JSON object",
		`{"time":true}`:                    "no time;",
		`{"time":99999999999999999999}`:    "invalid time",
		strings.Repeat(`{"a":`, 100):       "nested too deeply",
		`{"a":` + strings.Repeat(`[`, 100): "nested too deeply",
	} {
		var e Entry
		if err := parser(t, Auto, Fields{}).Parse([]byte(line), &e); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", line, err, want)
		}
	}
}

func TestNewParserErrors(t *testing.T) {
	many := make(map[string]string)
	for i := range 65 {
		many[fmt.Sprint(i)] = "x"
	}
	for _, c := range []struct {
		format Format
		fields Fields
		want   string
	}{
		{Combined, Fields{User: "usr"}, `field "usr": unknown in a log in combined format; write the number of the field, or one of remote_addr,`},
		{Envoy, Fields{User: "usr"}, "a log in envoy format"},
		{Auto, Fields{IP: "0"}, `field "0": not a field number; write 1 to 64`},
		{Auto, Fields{IP: "65"}, "not a field number"},
		{Auto, Fields{Hop: -1}, "hop: -1 is out of range"},
		{JSON, Fields{Headers: many}, "are too many"},
	} {
		if _, err := NewParser(c.format, c.fields); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v %+v: %v; want %q", c.format, c.fields, err, c.want)
		}
	}
	if _, err := ParseFormat("jsn"); err == nil || !strings.Contains(err.Error(), `did you mean "json"?`) {
		t.Error(err)
	}
	for _, name := range Formats() {
		if f, err := ParseFormat(name); err != nil || f.String() != name {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
}
