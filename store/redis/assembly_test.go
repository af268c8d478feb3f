package redis

import (
	"regexp"
	"strings"
	"testing"
)

// Every script that a call may ask for can be compiled, and has no place left where a
// block should be.
func TestEveryScript(t *testing.T) {
	client := connect(t)
	for n := range needs(needAll) + 1 {
		if n&needAlgorithms == 0 || n&needBack != 0 && n != needAll {
			continue // nobody asks for these
		}
		text := scriptText(columns, n)
		if strings.Contains(text, "-->") || strings.Contains(text, "--:") {
			t.Errorf("%07b: a block is left over", n)
		}
		if err := client.Do(t.Context(), client.B().ScriptLoad().Script(text).Build()).Error(); err != nil {
			t.Errorf("%07b: %v", n, err)
		}
	}
	for _, n := range []needs{needBucket, needFixedWindow, needSlidingWindow} {
		text := scriptText(singles, n)
		for _, left := range []string{"-->", "--:", "FRESH", "c.", "[k]"} {
			if strings.Contains(regexp.MustCompile("(?m)--.*$").ReplaceAllString(text, ""), left) {
				t.Errorf("%07b: %s is left over", n, left)
			}
		}
		if err := client.Do(t.Context(), client.B().ScriptLoad().Script(text).Build()).Error(); err != nil {
			t.Errorf("%07b: %v", n, err)
		}
	}
}

// What is used once is pasted, and what is used by several is called.
func TestAssembly(t *testing.T) {
	for _, c := range []struct {
		needs       needs
		has, hasNot string
	}{
		{needBucket, "free = (room - room % c.p) / c.p", "local function judge"},
		{needBucket, "nextA, nextB = a + units * c.p, b", "c.algorithm"},
		{needBucket | needFixedWindow, "c.algorithm.look()", "local function judge"},
		{needBucket | needSeveral, "local function judge()", "c.algorithm.look()"},
		{needSlidingLog, "addUnits(taken, added)", "hold()"},
		{needAll, "ALGORITHM[5] = { look = look5, charge = charge5, wait = wait5, tail = tail5 }", "-->"},
	} {
		text := scriptText(columns, c.needs)
		if !strings.Contains(text, c.has) || strings.Contains(text, c.hasNot) {
			t.Errorf("%07b: want %q and no %q", c.needs, c.has, c.hasNot)
		}
	}
}
