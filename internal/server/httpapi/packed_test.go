package httpapi

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/fault"
)

// plain is the body of an answer that was compressed.
func (r *reply) plain(t *testing.T) []byte {
	t.Helper()
	if r.Header.Get("Content-Encoding") != "gzip" || fmt.Sprint(len(r.body)) != r.Header.Get("Content-Length") {
		t.Fatalf("%d bytes with %v", len(r.body), r.Header)
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// putMany has so many for the same clients, of which the last one denies.
func putMany(t *testing.T, s *stand, n int) {
	t.Helper()
	var rules strings.Builder
	rules.WriteString("rules:\n")
	for i := range n {
		fmt.Fprintf(&rules, "- {id: rule-%d, key: user, limit: %d/1h}\n", i, n-i)
	}
	s.call("PUT /v1/rules", rules.String(), "If-Match: *", "Content-Type: application/yaml").want(t, 200, nil)
}

// Long answers of the management are compressed for those who take them so. They have a
// weak tag then, which can be sent back.
func TestPacked(t *testing.T) {
	s := newStand(t, Options{})
	putMany(t, s, 100)
	const packs = "Accept-Encoding: br, gzip;q=0.5"
	for _, what := range []string{"GET /v1/rules", "GET /v1/rules?format=yaml", "GET /v1/keys?key=user:a"} {
		want, got := s.call(what, ""), s.call(what, "", packs)
		if text := got.plain(t); !bytes.Equal(text, want.body) || len(got.body) > len(text)/3 {
			t.Errorf("%s: %d bytes for %d, which are %d", what, len(got.body), len(text), len(want.body))
		}
		for _, r := range []*reply{want, got} {
			if !slices.Contains(r.Header["Vary"], "Accept-Encoding") || r.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: %v", what, r.Header)
			}
		}
		if want.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s is compressed for who does not ask for it", what)
		}
		if tag := want.Header.Get("ETag"); tag != "" && got.Header.Get("ETag") != "W/"+tag {
			t.Errorf("%s has the tags %s and %s", what, tag, got.Header.Get("ETag"))
		}
	}
	tag := s.call("GET /v1/rules", "", packs).Header.Get("ETag")
	if r := s.call("GET /v1/rules", "", packs, "If-None-Match: "+tag); r.StatusCode != 304 || r.Header.Get("Content-Encoding") != "" || len(r.Header["Vary"]) != 2 {
		t.Errorf("%d %v", r.StatusCode, r.Header)
	}
	s.call("DELETE /v1/rules/rule-7", "", "If-Match: "+tag).want(t, 200, nil)

	// What is short, and what is no answer of the management, is sent as it is.
	for what, body := range map[string]string{
		"GET /v1/rules/rule-3": "", "GET /v1/openapi.yaml": "", "POST /v1/check": `{"user":"a"}`, "GET /v1/keys?key=none": "", "GET /v1/rules/none": "",
	} {
		if r := s.call(what, body, packs); r.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %v", what, r.Header)
		}
	}
	packing.Store(maxPacking)
	if r := s.call("GET /v1/rules", "", packs); r.Header.Get("Content-Encoding") != "" || !json.Valid(r.body) {
		t.Errorf("while others are at it: %v", r.Header)
	}
	packing.Store(0)
	s.call("GET /v1/rules", "", packs).plain(t)
}

// Who has many limits is told first of those that are nearly used up.
func TestKeysOfMany(t *testing.T) {
	s := newStand(t, Options{})
	putMany(t, s, 60)
	s.call("POST /v1/check", `{"user":"a"}`).want(t, 200, nil)
	var a KeysAnswer
	s.call("GET /v1/keys?key=user:a&n=3", "").want(t, 200, &a)
	if a.LeftOut != 57 || len(a.Results) != 3 || a.Results[0].Rule != "rule-59" || a.Results[2].Rule != "rule-57" {
		t.Errorf("%+v", a)
	}
	for _, n := range []string{"60", "100000"} {
		a = KeysAnswer{}
		s.call("GET /v1/keys?key=user:a&n="+n, "").want(t, 200, &a)
		if a.LeftOut != 0 || len(a.Results) != 60 || a.Results[0].Rule != "rule-0" {
			t.Errorf("%+v", a)
		}
	}
	s.call("GET /v1/keys?key=user:a&n=0", "").wantProblem(t, fault.BadField, "n")
	s.call("DELETE /v1/keys?key=user:a&n=3", "").wantProblem(t, fault.BadField, "n")
}
