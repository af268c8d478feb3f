package manage

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

func TestRead(t *testing.T) {
	q := Question{
		Request: rule.Request{User: "u", APIKey: "k", Tier: "t", Method: "GET", Host: "h", Path: "/a?b", Cost: 3, Attributes: map[string]string{"a": "4"}},
		Headers: map[string]string{"x-a": "1", "Host": "other"}, Cookies: map[string]string{"c": "2"}, Parameters: map[string]string{"q": "3"},
	}
	if err := q.Read("2001:db8::1"); err != nil {
		t.Fatal(err)
	}
	req := &q.Request
	if req.IP != netip.MustParseAddr("2001:db8::1") || req.User != "u" || req.APIKey != "k" || req.Tier != "t" || req.Method != "GET" ||
		req.Host != "h" || req.Path != "/a" || req.Cost != 3 || req.Attributes["a"] != "4" {
		t.Errorf("%+v", req)
	}
	v := req.Values
	one := func(value string, _ int) string { return value }
	if one(v.Header("X-A", 0)) != "1" || one(v.Header("Host", 0)) != "other" || one(v.Cookie("c", 0)) != "2" || one(v.Query("q", 0)) != "3" ||
		one(v.Header("X-B", 0))+one(v.Cookie("x", 0))+one(v.Query("x", 0)) != "" || one(v.Header("X-A", 1)) != "" {
		t.Errorf("%+v", v)
	}
	// What was there of another request is gone.
	q = Question{Request: rule.Request{Host: "h"}}
	if err := q.Read(""); err != nil || req.IP.IsValid() || req.User != "" || req.Host != "h" || one(req.Values.Cookie("c", 0)) != "" {
		t.Errorf("%+v %v", req, err)
	}
}

func TestReadRejects(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	entries := func(n, size int) map[string]string {
		m := map[string]string{}
		for i := range n {
			m[fmt.Sprintf("K%03d", i)] = long(size)
		}
		return m
	}
	type asked struct {
		Question
		ip string
	}
	question := func(r rule.Request, ip string) asked { return asked{Question{Request: r}, ip} }
	for _, c := range []struct {
		q           asked
		field, word string
	}{
		{question(rule.Request{}, "x"), "ip", "not an address"},
		{question(rule.Request{}, long(MaxWord+1)), "ip", "1025 bytes"},
		{question(rule.Request{User: long(MaxWord + 1)}, ""), "user", "1025 bytes"},
		{question(rule.Request{APIKey: long(MaxWord + 1)}, ""), "api_key", "1025 bytes"},
		{question(rule.Request{Tier: long(MaxWord + 1)}, ""), "tier", "1025 bytes"},
		{question(rule.Request{Method: long(MaxWord + 1)}, ""), "method", "1025 bytes"},
		{question(rule.Request{Host: long(MaxWord + 1)}, ""), "host", "1025 bytes"},
		{question(rule.Request{Path: "/" + long(MaxText)}, ""), "path", "8193 bytes"},
		{question(rule.Request{Path: "x"}, ""), "path", "slash"},
		{question(rule.Request{Path: "?"}, ""), "path", "slash"},
		{asked{Question: Question{Headers: entries(101, 1)}}, "headers", "101 entries"},
		{asked{Question: Question{Cookies: entries(101, 1)}}, "cookies", "101 entries"},
		{asked{Question: Question{Parameters: map[string]string{long(MaxWord + 1): ""}}}, "query", "at most 1024"},
		{question(rule.Request{Attributes: map[string]string{"a": long(MaxText + 1)}}, ""), "attributes", "a value 8192"},
		{asked{Question: Question{Headers: entries(40, 1<<10), Request: rule.Request{Attributes: entries(40, 1<<10)}}}, "attributes", "more than 65536"},
		{asked{Question: Question{Headers: map[string]string{"a": "", "A": ""}}}, "headers", "A is given twice"},
		{question(rule.Request{Cost: -1}, ""), "cost", "negative"},
		{question(rule.Request{Cost: weir.MaxUnits + 1}, ""), "cost", "more than any limit"},
	} {
		err, ok := errors.AsType[*FieldError](c.q.Read(c.q.ip))
		if !ok || err.Field != c.field || !strings.Contains(err.Detail, c.word) || !strings.HasPrefix(err.Detail, c.field+": ") {
			t.Errorf("%+v, want %s of %s", err, c.word, c.field)
		}
	}
	// 64 KiB is just short enough.
	q := Question{Headers: entries(64, MaxQuestion/64-4)}
	if err := q.Read(""); err != nil {
		t.Error(err)
	}
	q.User = "x"
	if err := q.Read(""); err == nil {
		t.Error("one byte more is taken, too")
	}
}

func TestSentence(t *testing.T) {
	for text, want := range map[string]string{
		"rule: it is odd": "It is odd.", "engine: the key: it is odd.": "The key: it is odd.", "key: it is odd": "key: it is odd.",
		"is it odd?": "Is it odd?",
	} {
		if got := Sentence(fmt.Errorf("%s", text)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := Clip(strings.Repeat("ä", MaxDetail)); len(got) > MaxDetail || !strings.HasSuffix(got, "ä…") {
		t.Errorf("%d bytes: %s", len(got), got[len(got)-8:])
	}
}

func TestRequestID(t *testing.T) {
	for id, want := range map[string]bool{
		"": false, "a": true, "A-9_.z": true, "a b": false, "a\n": false, "ä": false,
		strings.Repeat("x", 64): true, strings.Repeat("x", 65): false,
	} {
		if got := isRequestID(id); got != want {
			t.Errorf("%q: %v", id, got)
		}
	}
	if a, b := NewRequestID(), NewRequestID(); a == b || !isRequestID(a) || len(a) != 16 {
		t.Errorf("%s %s", a, b)
	}
}
