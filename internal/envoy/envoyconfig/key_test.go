package envoyconfig

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir"
)

func TestAppendKey(t *testing.T) {
	d := read(t, "domain: e|d=g\\e").Domain(`e|d=g\e`)
	long := strings.Repeat("v", maxValue+1)
	for _, c := range []struct {
		entries []Entry
		want    string
	}{
		{nil, `e\|d\=g\\e`},
		{[]Entry{{"a", "1"}, {"b", ""}}, `e\|d\=g\\e|a=1|b=`},
		{[]Entry{{`k|=\`, `v|=\`}}, `e\|d\=g\\e|k\|\=\\=v\|\=\\`},
		{[]Entry{{"generic_key", "x"}, {":authority", "x"}, {"authenticated", "true"}}, `e\|d\=g\\e|generic_key=x|:authority=x|authenticated=true`},
		{[]Entry{{"a", long[:maxValue]}}, `e\|d\=g\\e|a=` + long[:maxValue]},
		{[]Entry{{"a", long}}, `e\|d\=g\\e|a=\sha256:c156839228d48aaa2d2105e01686a1e4`},
	} {
		if got := string(d.AppendKey(nil, c.entries)); got != c.want {
			t.Errorf("%v: %s, want %s", c.entries, got, c.want)
		}
	}
}

// What sounds like a secret is in no key, whether the file knows it or not.
func TestKeyHidesSecrets(t *testing.T) {
	d := read(t, "domain: d\ndescriptors: [{key: authorization}, {key: plain}]").Domain("d")
	for _, key := range []string{"authorization", "Authorization", "x-api-key", "session_id", "jwt", "X-Auth-Token", "cookie"} {
		text := string(d.AppendKey(nil, []Entry{{key, "s3cret"}}))
		if strings.Contains(text, "s3cret") || !strings.Contains(text, `=\sha256:`) {
			t.Errorf("%s: %s", key, text)
		}
		if other := string(d.AppendKey(nil, []Entry{{key, "s3creT"}})); other == text {
			t.Errorf("%s: two values are one", key)
		}
	}
	if text := string(d.AppendKey(nil, []Entry{{"plain", "s3cret"}})); text != "d|plain=s3cret" {
		t.Error(text)
	}
}

// Two lists have one key only if they are the same, and no key is too long.
func TestKeysAreUnambiguous(t *testing.T) {
	config := read(t, "domain: 'd'", "domain: 'd|a=b'", `domain: 'd\'`)
	text := rapid.OneOf(
		rapid.StringMatching(`[ab|=\\]{0,4}`),
		rapid.SampledFrom([]string{"token", `\sha256:`, strings.Repeat("a", 256), strings.Repeat("a", 257), strings.Repeat("|", 255), strings.Repeat("b", 900)}))
	entry := rapid.Custom(func(t *rapid.T) Entry { return Entry{text.Draw(t, "key"), text.Draw(t, "value")} })
	list := rapid.SliceOfN(entry, 0, 4)
	domain := rapid.SampledFrom(config.Domains())
	rapid.Check(t, func(t *rapid.T) {
		d1, d2 := domain.Draw(t, "domain"), domain.Draw(t, "other domain")
		l1, l2 := list.Draw(t, "list"), list.Draw(t, "other list")
		same := d1 == d2 && len(l1) == len(l2)
		for i := range l1 {
			same = same && l1[i] == l2[i]
		}
		k1, k2 := string(config.Domain(d1).AppendKey(nil, l1)), string(config.Domain(d2).AppendKey(nil, l2))
		if (k1 == k2) != same {
			t.Fatalf("%s %v is %s, and %s %v is %s", d1, l1, k1, d2, l2, k2)
		}
		if len(k1) > weir.MaxKeyLen {
			t.Fatalf("a key has %d bytes", len(k1))
		}
	})
}
