package simulate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/traffic/scenario"
)

func parse(t *testing.T, src string) *scenario.Script {
	t.Helper()
	script, err := scenario.Parse("test.txt", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return script
}

func TestFromScript(t *testing.T) {
	cases, err := FromScript(parse(t, `
limit ip: 3/5s
limit user: sliding_log 10/1m
limit idle: 1/1s
at 2s take ip=a and user=u 2 -> allow
at 1s take ip=a times 3 every 10ms
at 3s peek ip=b
at 4s reset ip=a
`))
	if err != nil || len(cases) != 2 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	ip, user := cases[0], cases[1]
	if ip.Name != "ip" || len(ip.Traffic.Requests) != 4 || ip.Traffic.Requests[2].At != 1_020_000 || ip.Traffic.Requests[3].At != 2_000_000 {
		t.Errorf("ip: %+v", ip)
	}
	if user.Name != "user" || len(user.Traffic.Requests) != 1 || user.Traffic.Requests[0].Cost != 2 {
		t.Errorf("user: %+v", user)
	}
	if len(ip.Traffic.Notes) != 3 {
		t.Errorf("notes: %q", ip.Traffic.Notes)
	}
}

func TestFromScriptErrors(t *testing.T) {
	manyKeys := "limit sliding_log 1000000/1m\n"
	for i := range 20 {
		manyKeys += fmt.Sprintf("at 0s take k%d 1000000\n", i)
	}
	for src, want := range map[string]string{
		"":                            "no requests",
		"limit 1/1s\nat 0s peek a":    "no requests",
		"limit 1/1s\nat 0s take a 0":  "costs at least 1",
		"limit 1/1s\nat 0s take \"\"": "empty",
		"limit 1/1s\nat 36000d take a times 2 every 18000d":                "100 years",
		"limit 1/1s\n" + strings.Repeat("at 0s take a times 1000000\n", 3): "more than 2000000 requests",
		"limit 1/1s\n" + strings.Repeat("at 0s peek a times 1000000\n", 3): "more than 2000000 requests",
		"limit 1/1s\n" + "at 0s take a 4000000000000000000 times 5000":     "the sum of the costs is too large",
		manyKeys: "128 MB",
	} {
		_, err := FromScript(parse(t, src))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v; want %q", src, err, want)
		}
	}
}

// TestCases plays every scenario that the project has.
func TestCases(t *testing.T) {
	scripts, err := scenario.Cases()
	if err != nil || len(scripts) == 0 {
		t.Fatalf("found %d cases, %v", len(scripts), err)
	}
	for _, script := range scripts {
		cases, err := FromScript(script)
		if err != nil {
			t.Errorf("%s: %v", script.Name, err)
		}
		for _, c := range cases {
			// A prefix is as good, and the race detector is slow.
			c.Traffic.Requests = c.Traffic.Requests[:min(len(c.Traffic.Requests), 10_000)]
			lanes, _ := AllLanes(c.Limit)
			r := Run(c.Limit, lanes, c.Traffic, 60)
			text(t, r, Look{Width: 80})
			for _, l := range r.Lanes {
				if l.Worst > l.Bound || l.Allowed+l.Denied != r.Offered {
					t.Errorf("%s %s: %s: %+v", script.Name, c.Name, l.Name, l.tally)
				}
			}
		}
	}
}

func TestAnswered(t *testing.T) {
	for line, want := range map[string]int{
		"at 0s take a":                    0,
		"at 0s take a -> allow":           1,
		"at   0s\ttake a->allow":          0, // the key is a->allow
		"at 0s take a # -> allow":         0,
		`at 0s take "a -> b"`:             0,
		`at 0s take "a  -> b"   -> allow`: 1,
		"at 0s take a -> allow\r":         1,
	} {
		src := "limit 1/1s\n" + line
		if got := parse(t, src).Answered(); got != want {
			t.Errorf("%q: %d, want %d", line, got, want)
		}
	}
}
