package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The files are what the parts are put together to.
func TestScriptsAreCurrent(t *testing.T) {
	files, err := filepath.Glob("*.lua")
	if err != nil || len(files) != len(scripts) {
		t.Errorf("%d files, %d scripts, %v", len(files), len(scripts), err)
	}
	dir := t.TempDir()
	if err := write(dir); err != nil {
		t.Fatal(err)
	}
	for _, s := range scripts {
		want, err := os.ReadFile(filepath.Join(dir, s.name+".lua"))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(s.name + ".lua"); err != nil || string(got) != string(want) {
			t.Errorf("%s.lua is not what part/*.lua are put together to; run make generate (%v)", s.name, err)
		}
	}
}

// No place is left where a block should be, and in singles no table.
func TestNothingIsLeftOver(t *testing.T) {
	for _, s := range scripts {
		text, err := assemble(s.features)
		if err != nil {
			t.Fatal(err)
		}
		left := []string{"-->", "--:"}
		if s.features[0] == single {
			text = regexp.MustCompile("(?m)-- .*$").ReplaceAllString(text, "")
			left = append(left, "FRESH", "c.", "log.", "[k]")
		}
		for _, l := range left {
			if strings.Contains(text, l) {
				t.Errorf("%s: %s is left over", s.name, l)
			}
		}
	}
}

// What is used once is pasted, and what is used by several is called.
func TestBlocks(t *testing.T) {
	for _, c := range []struct{ features, has, hasNot string }{
		{"columns bucket", "free = (room - room % c.p) / c.p", "local function judge"},
		{"columns bucket", "nextA = a + units * c.p", "c.algorithm"},
		{"many bucket fixed_window", "elseif kind == 2 then", "c.algorithm"},
		{"columns bucket fixed_window", "c.algorithm.look()", "local function judge"},
		{"columns bucket several", "local function judge()", "c.algorithm.look()"},
		{"columns sliding_log", "pages().keepUnits(kept)", "hold()"},
		{"columns several back sliding_log", "refund = function(of, back)", "refundLog()"},
		{"single back sliding_log", "elseif cost < 0 then", "log.open"},
		{"single bucket", "c_full - level", "elseif cost < 0 then"},
		{"single bucket", "expires = oldFresh + max(SECOND", "local function expiry"},
		{"single holds bucket", "do -- recount", "local function recount"},
		{"single holds bucket", "expires = usualExpires", "-->"},
		{"columns several back bucket fixed_window sliding_window sliding_log sliding_buckets", "ALGORITHM[5] = { look = look5, charge = charge5, room = room5, wait = wait5, tail = tail5 }", "-->"},
	} {
		text, err := assemble(strings.Fields(c.features))
		if err != nil || !strings.Contains(text, c.has) || strings.Contains(text, c.hasNot) {
			t.Errorf("%s: want %q and no %q, %v", c.features, c.has, c.hasNot, err)
		}
	}
}
