package lint

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The surface of weir is every name that a user's program, rule, dashboard or script has from us. testdata
// has that of the last release, a line a name, and this test compares it with that of the tree: what is
// new passes, and what is gone or different has to be deprecated or told.

var record = flag.String("record", "", "write the surface of the tree to testdata, as that of this `version`")

// surfaces returns the lines of each part of the surface, "name" or "name: detail".
var surfaces = map[string]func(*testing.T) []string{
	"go": goSurface, "http": httpSurface, "grpc": grpcSurface, "metrics": metricSurface, "flags": flagSurface, "rules": ruleSurface,
}

// A release has the names of the release before it.
func TestSurface(t *testing.T) {
	changelog, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	version, told := readChangelog(string(changelog))
	if *record != "" {
		writeSurface(t, *record)
		return
	}
	if version == "" {
		t.Fatal("CHANGELOG.md has no heading of a release, such as ## v0.1.0 (2026-11-18)")
	}
	dir := filepath.Join("testdata", version)
	if _, err := os.Stat(dir); err != nil {
		t.Fatalf("CHANGELOG.md has %s, but its names are not recorded: in the commit of the release, run go test ./internal/lint -run TestSurface -record %s", version, version)
	}
	for _, part := range slices.Sorted(maps.Keys(surfaces)) {
		t.Run(part, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(dir, part+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			was, is := strings.Split(strings.TrimSpace(string(text)), "\n"), surfaces[part](t)
			if len(was) < 10 || len(is) < 10 {
				t.Fatalf("%s had %d names, and the tree has %d", version, len(was), len(is))
			}
			for _, wrong := range compareSurfaces(version, was, is, told) {
				t.Error(wrong)
			}
		})
	}
}

// writeSurface replaces the recorded surface.
func writeSurface(t *testing.T, version string) {
	t.Helper()
	if !regexp.MustCompile(`^v\d+\.\d+\.\d+$`).MatchString(version) {
		t.Fatalf("-record %s: write a version such as v0.1.0; a release candidate is not recorded", version)
	}
	found := map[string][]string{}
	for part, surface := range surfaces {
		found[part] = surface(t)
	}
	if t.Failed() {
		return
	}
	before, err := filepath.Glob("testdata/v*")
	if err != nil {
		t.Fatal(err)
	}
	for _, old := range before {
		if err := os.RemoveAll(old); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join("testdata", version)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for part, lines := range found {
		slices.Sort(lines)
		if err := os.WriteFile(filepath.Join(dir, part+".txt"), []byte(strings.Join(slices.Compact(lines), "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

var releaseHeading = regexp.MustCompile(`(?m)^## (v\d+\.\d+\.\d+)(?: .*)?$`)

// readChangelog returns the last release, and what the section Unreleased has in code.
func readChangelog(text string) (version string, told []string) {
	if m := releaseHeading.FindStringSubmatch(text); m != nil {
		version = m[1]
	}
	if _, rest, found := strings.Cut(text, "\n## Unreleased\n"); found {
		section, _, _ := strings.Cut(rest, "\n## ")
		for _, span := range codeSpan.FindAllString(section, -1) {
			told = append(told, strings.Trim(span, "`"))
		}
	}
	return version, told
}

// compareSurfaces returns what was there and is not, a sentence each, unless the changelog tells it.
func compareSurfaces(version string, was, is, told []string) (wrong []string) {
	have := map[string]bool{}
	names := map[string][]string{} // lines of the tree by name
	for _, line := range is {
		name, _, _ := strings.Cut(line, ": ")
		have[line], names[name] = true, append(names[name], line)
	}
	gone := map[string]bool{} // names
	for _, line := range was {
		if name, _, _ := strings.Cut(line, ": "); names[name] == nil {
			gone[name] = true
		}
	}
	for _, line := range was {
		name, detail, _ := strings.Cut(line, ": ")
		if have[line] || isTold(name, gone, told) && strings.HasPrefix(version, "v0.") {
			continue
		}
		what := fmt.Sprintf("%s is gone", name)
		if !gone[name] {
			what = fmt.Sprintf("%s was %q in %s and is not any more", name, detail, version)
		}
		remedy := "keep it, mark it as deprecated, and remove it in a later minor version"
		if strings.HasPrefix(version, "v0.") {
			remedy += "; or, before 1.0, name `" + spellings(name)[0] + "` and what replaces it in the section Unreleased of CHANGELOG.md"
		}
		wrong = append(wrong, what+": "+remedy+" (docs/reference/compatibility.md)")
	}
	return wrong
}

// isTold is whether the changelog names what has changed, or what it was a part of, if all of that is gone.
func isTold(name string, gone map[string]bool, told []string) bool {
	for i, r := range name + "." {
		whole := name[:i]
		if i < len(name) && (r != '.' && r != ' ' || !gone[whole]) {
			continue
		}
		for _, spelling := range spellings(whole) {
			if slices.ContainsFunc(told, regexp.MustCompile(`(^|[^\w-])`+regexp.QuoteMeta(spelling)+`($|[^\w-])`).MatchString) {
				return true
			}
		}
	}
	return false
}

// spellings are how a changelog may write a name: redis.Options.Prefix or Options.Prefix, CheckAnswer.reset_at or
// reset_at, weir serve --http or --http.
func spellings(name string) []string {
	if !strings.Contains(name, " ") {
		name = name[strings.LastIndex(name, "/")+1:]
	}
	all := []string{name}
	if _, rest, found := strings.Cut(name, "."); found {
		all = append(all, rest)
	}
	if _, flag, found := strings.Cut(name, " --"); found {
		all = append(all, "--"+flag)
	}
	return all
}

// What is new passes; what is gone or different does not, unless the changelog says so.
func TestSurfacesDiffer(t *testing.T) {
	was := []string{"weir.Limiter: type struct", "weir.Limiter.Allow: func() bool", "store/redis.Options.Prefix: string", "weir top: command", "weir top --lines: =10", "CheckAnswer.reset_at: integer"}
	for _, c := range []struct {
		version string
		is      []string
		told    string // in the section Unreleased
		want    []string
	}{
		{"v0.1.0", append([]string{"weir.New: func()"}, was...), "", nil},
		{"v0.1.0", was[1:], "", []string{"weir.Limiter is gone: keep it"}},
		{"v0.1.0", was[:5], "", []string{"name `CheckAnswer.reset_at` and what replaces it"}},
		{"v0.1.0", was[:5], "`reset_at` is gone", nil},
		{"v0.1.0", was[:5], "`reset_at_ms` is new, reset_at is gone", []string{"CheckAnswer.reset_at is gone"}},
		{"v1.2.0", was[:5], "`reset_at` is gone", []string{"remove it in a later minor version (docs"}},
		{"v0.1.0", []string{was[0], "weir.Limiter.Allow: func() error", was[2], was[3], was[4], was[5]}, "", []string{`weir.Limiter.Allow was "func() bool" in v0.1.0`}},
		{"v0.1.0", []string{was[0], was[1], was[3], was[4], was[5]}, "`redis.Options.Prefix`", nil},
		{"v0.1.0", []string{was[0], was[1], was[3], was[4], was[5]}, "`Options.Prefix`", nil},
		{"v0.1.0", []string{was[0], was[1], was[3], was[4], was[5]}, "`memory.Options`", []string{"store/redis.Options.Prefix is gone"}},
		{"v0.1.0", []string{was[0], was[1], was[2], was[5]}, "`weir top` is gone", nil},
		{"v0.1.0", []string{was[0], was[1], was[2], was[3], was[5]}, "`weir top` is faster", []string{"weir top --lines is gone"}},
		{"v0.1.0", []string{was[0], was[1], was[2], was[3], was[5]}, "`--lines` is gone", nil},
	} {
		_, told := readChangelog("# Changelog\n\n## Unreleased\n\n- " + c.told + "\n\n## v0.1.0\n\n- `Options.Prefix`, `reset_at`\n")
		wrong := compareSurfaces(c.version, was, c.is, told)
		ok := len(wrong) == len(c.want)
		for i := range min(len(wrong), len(c.want)) {
			ok = ok && strings.Contains(wrong[i], c.want[i])
		}
		if !ok {
			t.Errorf("%q with %q in the changelog: %q, want %q", c.is, c.told, wrong, c.want)
		}
	}
}
