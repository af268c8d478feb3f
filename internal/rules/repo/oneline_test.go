package repo

import "testing"

func TestOneLine(t *testing.T) {
	for text, want := range map[string]string{
		" a\nb\x1b[31m\x00 ":           "a b [31m",
		"a\u2028b\u2029c":              "a b c",
		"a\u202egpj.exe\u2066b\u200fc": "a gpj.exe b c",
		"\xff":                         "\uFFFD",
		"限流 👩\u200d💻":                  "限流 👩\u200d💻",
	} {
		if got := OneLine(text, 100); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
