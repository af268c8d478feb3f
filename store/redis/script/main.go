// Command script assembles the Redis scripts of package redis from the parts in part/.
//
// There are several scripts, because Redis executes a whole script at every call,
// including its definitions: a call for token buckets should not pay for logs. A part
// may have blocks, which begin with a line such as
//
//	--: look
//
// and use the local variables of the script. A line such as
//
//	--> look
//
// uses the block: it is copied to that place, or called. Copies are faster, because a
// function call, and a local variable that functions share, cost more than most of what
// these blocks do.
package main

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

//go:embed part/*.lua
var partFiles embed.FS

// Features that a script can have, beside the algorithms, which are named by their parts.
const (
	single  = "single"  // requests of one op to take or, with holds, to reserve and settle; of one algorithm: no tables but locals
	columns = "columns" // anything else
	many    = "many"    // requests to take any number of ops on different keys: tables, but no functions for what algorithms do
	several = "several" // requests of several ops, and peeks
	back    = "back"    // refunds and resets
	holds   = "holds"   // holds
)

// counters are the algorithms whose state is a few numbers.
var counters = []string{"bucket", "fixed_window", "sliding_window"}

// scripts are the files, and what each is able to do.
var scripts = []struct {
	name     string
	features []string
}{
	{"single_bucket", []string{single, "bucket"}},
	{"single_fixed_window", []string{single, "fixed_window"}},
	{"single_sliding_window", []string{single, "sliding_window"}},
	{"single_sliding_buckets", []string{single, "sliding_buckets"}},
	{"single_sliding_log", []string{single, back, "sliding_log"}},
	{"held_bucket", []string{single, holds, "bucket"}},
	{"held_fixed_window", []string{single, holds, "fixed_window"}},
	{"held_sliding_window", []string{single, holds, "sliding_window"}},
	{"many_counters", slices.Concat([]string{many}, counters)},
	{"one_counters_log", slices.Concat([]string{columns, "sliding_log"}, counters)},
	{"one_counters_buckets", slices.Concat([]string{columns, "sliding_buckets"}, counters)},
	{"one_any", slices.Concat([]string{columns, "sliding_log", "sliding_buckets"}, counters)},
	{"several_sliding_log", []string{columns, several, "sliding_log"}},
	{"several_sliding_buckets", []string{columns, several, "sliding_buckets"}},
	{"several_counters", slices.Concat([]string{columns, several}, counters)},
	{"several_counters_log", slices.Concat([]string{columns, several, "sliding_log"}, counters)},
	{"several_counters_buckets", slices.Concat([]string{columns, several, "sliding_buckets"}, counters)},
	{"several_any", slices.Concat([]string{columns, several, "sliding_log", "sliding_buckets"}, counters)},
	{"back_sliding_log", []string{columns, several, back, "sliding_log"}},
	{"back_counters_log", slices.Concat([]string{columns, several, back, "sliding_log"}, counters)},
	{"all", slices.Concat([]string{columns, several, back, "sliding_log", "sliding_buckets"}, counters)},
	{"holds", slices.Concat([]string{columns, several, back, holds, "sliding_log", "sliding_buckets"}, counters)},
}

// parts are the files that a script is made of, in order, and the features that need
// them: any of these, or always if there are none. With and without are features that it
// must have besides, or must not. What is pasted is never called.
var parts = []struct {
	file          string
	features      []string
	with, without string
	pasted        bool
}{
	{file: "integers"},
	{file: "wide", features: []string{"bucket", "sliding_window"}},
	{file: "recount", features: []string{"bucket"}, pasted: true},
	{file: "standing"},
	{file: "expiry", pasted: true},
	{file: "expiry_functions", features: []string{columns, "sliding_log", "sliding_buckets"}},
	{file: "state", pasted: true},
	{file: "columns", features: []string{columns}},
	{file: "many", features: []string{many}},
	{file: "single", features: []string{single}},
	{file: "single_held", features: []string{single}, with: holds},
	{file: "tail", features: []string{"sliding_buckets"}, with: columns},
	{file: "tail_single", features: []string{"sliding_buckets"}, with: single},
	{file: "log", features: []string{"sliding_log"}, pasted: true},
	{file: "log_columns", features: []string{"sliding_log"}, with: columns, pasted: true},
	{file: "log_single", features: []string{"sliding_log"}, with: single},
	{file: "pages", features: []string{"sliding_log"}, pasted: true},
	{file: "log_load", features: []string{"sliding_log"}, with: columns},
	{file: "bucket", features: []string{"bucket"}},
	{file: "fixed_window", features: []string{"fixed_window"}},
	{file: "sliding_window", features: []string{"sliding_window"}},
	{file: "sliding_log", features: []string{"sliding_log"}},
	{file: "sliding_buckets", features: []string{"sliding_buckets"}},
	{file: "decide"},
	{file: "settle", features: []string{several}},
	{file: "forget", features: []string{back}, with: columns},
	{file: "back_fixed_window", features: []string{back, holds}, with: "fixed_window", pasted: true},
	{file: "back_sliding_window", features: []string{back, holds}, with: "sliding_window", pasted: true},
	{file: "refund_fixed_window", features: []string{back}, with: "fixed_window"},
	{file: "refund_sliding_window", features: []string{back}, with: "sliding_window"},
	{file: "refund_bucket", features: []string{back}, with: "bucket"},
	{file: "refund_sliding_log", features: []string{back}, with: "sliding_log", pasted: true},
	{file: "refund_log", features: []string{back}, with: "sliding_log", without: single},
	{file: "refund_sliding_buckets", features: []string{back}, with: "sliding_buckets"},
	{file: "refund_one", features: []string{back}, with: columns},
	{file: "refund", features: []string{back}, with: several},
	{file: "several", features: []string{several}},
	{file: "hold_begin", features: []string{holds}, with: columns},
	{file: "list", features: []string{holds}},
	{file: "list_functions", features: []string{holds}, with: columns},
	{file: "let_go_bucket", features: []string{holds}, with: "bucket"},
	{file: "list_held", features: []string{single}, with: holds},
	{file: "held_window", features: []string{single}, with: holds, without: "bucket"},
	{file: "held_bucket", features: []string{"bucket"}, with: holds, without: columns},
	{file: "held_fixed_window", features: []string{"fixed_window"}, with: holds, without: columns},
	{file: "held_sliding_window", features: []string{"sliding_window"}, with: holds, without: columns},
	{file: "hold", features: []string{holds}, with: columns},
	{file: "main", features: []string{columns}},
	{file: "main_many", features: []string{many}},
	{file: "main_single", features: []string{single}, without: holds},
	{file: "main_held", features: []string{single}, with: holds},
}

// algorithms are their numbers in package weir, by the part that is their arithmetic.
var algorithms = map[string][]int{
	"bucket": {0, 1}, "fixed_window": {2}, "sliding_window": {3}, "sliding_log": {4}, "sliding_buckets": {5},
}

// doings are the blocks of an algorithm. Not all have those after the first few.
var doings = []string{"look", "charge", "wait", "room", "hold", "tail", "prepare", "ready", "elseBack"}

const always = 4

func main() {
	if err := write("script"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write puts all scripts into a directory.
func write(dir string) error {
	for _, s := range scripts {
		text, err := assemble(s.features)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, s.name+".lua"), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// assemble returns a script. What has one place where it is used is put there. Elsewhere
// it is called.
func assemble(features []string) (string, error) {
	a := assembly{single: slices.Contains(features, single), blocks: map[string]string{}, pastesSteps: !slices.Contains(features, several)}
	known := 0
	for _, f := range features {
		if _, ok := algorithms[f]; ok {
			known++
		}
	}
	a.pastesAlgorithm, a.chains = known == 1, map[string][]variant{}
	a.picks = slices.Contains(features, many)
	a.out.WriteString("-- Code generated by make generate from part/*.lua; DO NOT EDIT.\n")
	for _, p := range parts {
		has := func(f string) bool { return slices.Contains(features, f) }
		if len(p.features) > 0 && !slices.ContainsFunc(p.features, has) || p.with != "" && !has(p.with) || has(p.without) {
			continue
		}
		text, err := partFiles.ReadFile("part/" + p.file + ".lua")
		if err != nil {
			return "", err
		}
		a.add(string(text), algorithms[p.file], p.pasted)
	}
	return a.out.String(), nil
}

// assembly is a script that is being put together.
type assembly struct {
	out             strings.Builder
	single          bool
	blocks          map[string]string // that are pasted
	pastesSteps     bool              // judge, decide, commit and answer
	pastesAlgorithm bool              // what an algorithm does: there is only one
	picks           bool              // what an algorithm does is pasted for each of them, with conditions
	chains          map[string][]variant
}

// variant is a block of an algorithm that has these numbers.
type variant struct {
	numbers []int
	body    string
}

var (
	beginBlock = regexp.MustCompile(`(?m)^--: (\w+)\n`)
	useBlock   = regexp.MustCompile(`(?m)^( *)--> (\w+)\n`)

	// In a script of singles, what is in tables otherwise is in locals.
	inLocals = strings.NewReplacer("FRESH[k]", "oldFresh", "CHANGED[k]", "changed", "FOREIGN[k]", "foreign", "KEYS[k]", "name", "WORDS[k]", "keyWords", "A[k]", "oldA", "B[k]", "oldB")
	ofOne    = regexp.MustCompile(`\b(c|log)\.(\w+)`) // limit or log
)

// add appends a part; with numbers, it is the arithmetic of these algorithms.
func (a *assembly) add(text string, numbers []int, pasted bool) {
	if a.single {
		text = ofOne.ReplaceAllString(inLocals.Replace(text), "${1}_$2")
	}
	names, bodies := beginBlock.FindAllStringSubmatch(text, -1), beginBlock.Split(text, -1)
	a.write(bodies[0])
	pastes := pasted || a.pastesSteps
	if len(numbers) > 0 {
		pastes = a.pastesAlgorithm
	}
	var made []string
	for i, n := range names {
		name, body := n[1], strings.TrimSpace(bodies[i+1])+"\n"
		switch {
		case len(numbers) > 0 && a.picks:
			a.chains[name] = append(a.chains[name], variant{numbers, body})
			continue
		case pastes:
			a.blocks[name] = body
			continue
		}
		function := name
		if len(numbers) > 0 {
			function = fmt.Sprintf("%s%d", name, numbers[0])
			made = append(made, name+" = "+function)
		}
		a.write("local function " + function + "()\n" + indent(body, "  ") + "end\n")
	}
	if len(made) > 0 {
		for _, number := range numbers {
			fmt.Fprintf(&a.out, "ALGORITHM[%d] = { %s }\n", number, strings.Join(made, ", "))
		}
	}
}

// write appends a paragraph, with blocks, or calls of them, where they are used.
func (a *assembly) write(text string) {
	if text = strings.TrimSpace(a.expand(text)); text != "" {
		a.out.WriteString("\n" + text + "\n")
	}
}

func (a *assembly) expand(text string) string {
	return useBlock.ReplaceAllStringFunc(text, func(line string) string {
		m := useBlock.FindStringSubmatch(line)
		return indent(a.use(m[2]), m[1])
	})
}

func (a *assembly) use(name string) string {
	of := slices.Index(doings, name)
	body, pasted := a.blocks[name]
	switch {
	case pasted && strings.Contains("\n"+body, "\nlocal "):
		return "do -- " + name + "\n" + indent(a.expand(body), "  ") + "end\n"
	case pasted:
		return a.expand(body)
	case a.picks && of >= 0:
		return a.pick(a.chains[name])
	case of < 0:
		return name + "()\n"
	case a.pastesAlgorithm:
		return "" // it has no such thing
	case of >= always:
		return fmt.Sprintf("if c.algorithm.%s then c.algorithm.%s() end\n", name, name)
	}
	return fmt.Sprintf("c.algorithm.%s()\n", name)
}

// pick returns the blocks of several algorithms, of which one is done.
func (a *assembly) pick(variants []variant) string {
	if len(variants) == 0 {
		return ""
	}
	var b strings.Builder
	for i, v := range variants {
		var is []string
		for _, number := range v.numbers {
			is = append(is, fmt.Sprintf("kind == %d", number))
		}
		fmt.Fprintf(&b, "%s %s then\n%s", [...]string{"if", "elseif"}[min(i, 1)], strings.Join(is, " or "), indent(a.expand(v.body), "  "))
	}
	return b.String() + "end\n"
}

var startOfLine = regexp.MustCompile(`(?m)^(.)`)

func indent(text, by string) string { return startOfLine.ReplaceAllString(text, by+"$1") }
