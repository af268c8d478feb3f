package llm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirhq/weir/rule"
)

// golden is a response of testdata/usage.txt.
type golden struct {
	name, from, usage, body string
}

func goldens(t *testing.T) (list []golden) {
	_, text, _ := strings.Cut(kept(t, "usage.txt"), "\n== ")
	for entry := range strings.SplitSeq(text, "\n== ") {
		part := strings.SplitN(entry, "\n", 4)
		from, isFrom := strings.CutPrefix(part[1], "from: ")
		usage, isUsage := strings.CutPrefix(part[2], "usage: ")
		if !isFrom || !isUsage {
			t.Fatalf("testdata/usage.txt: %s", entry)
		}
		list = append(list, golden{part[0], from, usage, strings.TrimRight(part[3], "\n")})
	}
	return list
}

// named is usage with the names that rules have for its kinds.
func named(u rule.Usage) string {
	var list []string
	for _, kind := range []struct {
		name string
		n    int64
	}{
		{"input", u.Input}, {"cached", u.Cached}, {"cache_write", u.CacheWrite}, {"cache_write_1h", u.CacheWrite1h},
		{"audio_input", u.AudioInput}, {"image_input", u.ImageInput}, {"output", u.Output}, {"reasoning", u.Reasoning},
		{"audio_output", u.AudioOutput}, {"image_output", u.ImageOutput}, {"tool_calls", u.ToolCalls},
	} {
		if kind.n != 0 {
			list = append(list, fmt.Sprintf("%s=%d", kind.name, kind.n))
		}
	}
	return strings.Join(list, " ")
}

// Every kind of tokens that a vendor reports is found, whole and in a stream, in packets of any size.
func TestGoldenUsage(t *testing.T) {
	for _, g := range goldens(t) {
		name := "x.json"
		if body, stream := strings.CutPrefix(g.body, "data: "); stream {
			name, g.body = "x.sse", "data: "+body+"\n\n"
		}
		for _, part := range []int{1, 13, 1 << 20} {
			w := NewWatch(request)
			watched(w, header(name), 200, g.body, part)
			if u, known := w.Used(); named(u) != g.usage || !known {
				t.Errorf("%s (%s) in parts of %d:\n got %s\nwant %s", g.name, g.from, part, named(u), g.usage)
			}
			w.Free()
		}
	}
}
