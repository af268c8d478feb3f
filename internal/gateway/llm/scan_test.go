package llm

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weirhq/weir/rule"
)

// What ends a string is found wherever it is, also behind what is read by blocks.
func TestPlainBlocks(t *testing.T) {
	for length := range 420 {
		text := bytes.Repeat([]byte("\xff!#[]a"), 70)[:length]
		if n := plain(text); n != length {
			t.Fatalf("%d of %d", n, length)
		}
		for at := range length {
			for _, end := range []byte(`"\`) {
				was := text[at]
				text[at] = end
				if n := plain(text); n != at {
					t.Fatalf("%d of %d, want %d", n, length, at)
				}
				text[at] = was
			}
		}
	}
}

// Numbers of few digits are read as all others are, in one piece or byte by byte.
func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		text string
		want int64
	}{
		{"0", 0}, {"7", 7}, {"400", 400}, {"007", 7}, {"999999999999", 999_999_999_999}, {"1099511627776", MaxTokens}, {"1099511627775", MaxTokens - 1},
		{"9999999999999999999999", MaxTokens}, {"-5", 0}, {"+5", 5}, {"2.5", 3}, {"1e3", 1000}, {"1E+3", 1000}, {`"12"`, 12}, {`""`, 0}, {"null", 0}, {"1x", 0},
	} {
		body := `{"messages":"x","max_tokens":` + c.text + `,"n":1}`
		r, _ := Parse("/v1/chat/completions", []byte(body), rule.OpenAI)
		if r.MaxOutput != c.want {
			t.Errorf("%s: %d, want %d", c.text, r.MaxOutput, c.want)
		}
		w := NewWatch(Request{})
		w.Begin(200, map[string][]string{"Content-Type": {"application/json"}})
		for part := range strings.SplitSeq(`{"usage":{"completion_tokens":`+c.text+`}}`, "") {
			w.Pass([]byte(part))
		}
		w.End()
		if u, _ := w.Used(); u.Output != c.want {
			t.Errorf("%s: %d used, want %d", c.text, u.Output, c.want)
		}
		w.Free()
	}
	if n, plain := digits([]byte(strconv.Itoa(MaxTokens))); plain || n != 0 {
		t.Error("a number that may be more than the maximum")
	}
}

// What is told does not depend on whether a string comes whole or byte by byte, be it JSON or not.
func TestWhole(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	pieces := []string{`{`, `}`, `[`, `]`, `,`, `:`, `"`, `\`, `"a"`, `"b"`, `"a":`, `"b":"`, `17`, `true`, ` `, `\n`, `\"`, `\u00e9`, `text`, strings.Repeat("0123456789", 4), strings.Repeat("x", 200)}
	for range 20_000 {
		var text []byte
		for range draw.IntN(16) {
			text = append(text, pieces[draw.IntN(len(pieces))]...)
		}
		told := func(part int) (all []string) {
			s := scanner{root: at(1, "a", at(2, "b", at(3)), "b", deep(4))}
			s.visit = func(v *value) {
				all = append(all, fmt.Sprintf("%d %c %q %d %d %d", v.id, v.kind, v.text, v.size, v.begin, v.end))
			}
			for p := range slices.Chunk(text, part) {
				s.feed(bytes.Clone(p))
			}
			s.finish()
			what, size := s.partial()
			return append(all, fmt.Sprint(what, size, s.state))
		}
		if whole, parts := told(len(text)+1), told(1); !slices.Equal(whole, parts) {
			t.Fatalf("%s:\n%s\n%s", text, whole, parts)
		}
	}
}
