package lint

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// budget is how many lines of Go an area may have, without tests and generated code. An area is a
// directory with all below it that have no area of their own. A change that needs more raises the
// number in the same commit and says why in its message, so that growth is a decision; one that
// needs less lowers it.
var budget = map[string]int{
	".":                 3900,
	"client":            1110,
	"cmd/weir":          6520,
	"counter":           4180,
	"deploy":            300,
	"engine":            6590,
	"examples":          500,
	"internal":          11110,
	"internal/app":      3450,
	"internal/clients":  1320,
	"internal/envoy":    2900,
	"internal/gateway":  4530,
	"internal/overload": 1370,
	"internal/rules":    6640,
	"internal/server":   11530,
	"internal/testkit":  4630,
	"internal/traffic":  6680,
	"metrics":           1420,
	"middleware":        3950,
	"queue":             2240,
	"rule":              11940,
	"scripts":           800,
	"stats":             6040,
	"store":             11250,
	"test/bench":        7500,
	"test/chaos":        3990,
	"test":              250,
	"web":               250,
}

// slack is how far below its budget an area may be before the budget has to follow.
const slack = 200

// maxLua is how many lines the Redis functions and scripts may have.
const maxLua = 4600

// What a newcomer can hold in the head.
const (
	maxRootFolders      = 18 // at the root
	maxInternalFolders  = 32 // directly in internal
	maxInternalPackages = 47 // in internal, at any depth
	maxPublicPackages   = 22 // that users import
)

// area returns the area of a directory, or "".
func area(dir string) string {
	for ; ; dir = path.Dir(dir) {
		if _, ok := budget[dir]; ok || dir == "." {
			return dir
		}
	}
}

func checkBudget(files []file) (wrong []string) {
	lines := map[string]int{}
	for _, f := range files {
		if !strings.HasSuffix(f.name, ".pb.go") {
			lines[area(f.dir)] += f.lines
		}
	}
	for _, name := range slices.Sorted(maps.Keys(budget)) {
		switch have, may := lines[name], budget[name]; {
		case have > may:
			wrong = append(wrong, fmt.Sprintf("%s has %d lines of Go and a budget of %d: say it with fewer, or raise the budget in internal/lint/budget_test.go and say why in the commit", name, have, may))
		case have < may-slack:
			wrong = append(wrong, fmt.Sprintf("%s has %d lines of Go and a budget of %d: lower the budget in internal/lint/budget_test.go, so that what was saved stays saved", name, have, may))
		}
	}
	return wrong
}

// checkFolders holds the number of packages, by whom they are for.
func checkFolders(files []file) (wrong []string) {
	folders, internal, public := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, f := range files {
		if rest, ok := strings.CutPrefix(f.dir, "internal/"); ok {
			first, _, _ := strings.Cut(rest, "/")
			folders[first], internal[f.dir] = true, true
		} else if user(f.dir) == "users" && !separate(f.dir) {
			public[f.dir] = true
		}
	}
	for _, c := range []struct {
		have map[string]bool
		most int
		what string
	}{
		{folders, maxInternalFolders, "folders in internal"},
		{internal, maxInternalPackages, "packages in internal"},
		{public, maxPublicPackages, "packages for users"},
	} {
		if len(c.have) > c.most {
			names := slices.SortedFunc(maps.Keys(c.have), cmp.Compare[string])
			wrong = append(wrong, fmt.Sprintf("there are %d %s, more than %d; is the new one a file of its neighbour? %s", len(c.have), c.what, c.most, strings.Join(names, " ")))
		}
	}
	return wrong
}

// separate is whether a directory is generated, or a module of its own, which users of the library
// do not see.
func separate(dir string) bool {
	return strings.HasPrefix(dir, "sdk/") || dir == "store/redis/goredis"
}
