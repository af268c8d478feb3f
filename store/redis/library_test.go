package redis

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
)

// useFiles changes the text of every file for the time of a test, in which the stores are opened.
func useFiles(t *testing.T, change func(string) string) {
	t.Helper()
	usual, changed := theLibrary, newLibrary(change)
	theLibrary = func() *library { return changed }
	t.Cleanup(func() { theLibrary = usual })
	if changed.name == usual().name {
		t.Fatal("nothing has changed")
	}
}

// onScripts has Redis run scripts for a store.
func onScripts(s *Store) *Store {
	s.functions.loader = nil
	return s
}

// ways are how Redis runs the Lua.
var ways = map[string]func(*Store) *Store{
	"functions": func(s *Store) *Store { return s },
	"scripts":   onScripts,
}

// What Redis has been sent is the files of lua/, one after the other, and what registers the functions.
func TestLibraryIsTheFiles(t *testing.T) {
	client := connect(t)
	storeOn(t, client, Options{})
	rest := theLibrary().functions
	names := testkit.Must(filepath.Glob("lua/*.lua"))(t)
	if len(names) != len(files) {
		t.Errorf("%d files in lua/, %d in the library", len(names), len(files))
	}
	for _, file := range files {
		text := string(testkit.Must(os.ReadFile("lua/" + file.name + ".lua"))(t))
		if !strings.Contains(rest, text) {
			t.Fatalf("%s.lua is missing, or in the wrong place", file.name)
		}
		_, rest, _ = strings.Cut(rest, text)
	}
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "redis.register_function('"+theLibrary().name+"_") {
			t.Errorf("there is more in the library: %q", line)
		}
	}
	if got := libraries(t, client); len(got) != 1 || got[0] != theLibrary().name {
		t.Errorf("Redis has the libraries %v", got)
	}
}

// libraries are the names of those that Redis has.
func libraries(t *testing.T, client rueidis.Client) (names []string) {
	t.Helper()
	for _, l := range testkit.Must(client.Do(t.Context(), client.B().FunctionList().Build()).ToArray())(t) {
		names = append(names, testkit.Must(l.AsStrMap())(t)["library_name"])
	}
	return names
}

// A function remembers some limits, and takes none for another one: not of another algorithm with the same numbers
// either. A script remembers none, and has the same answers.
func TestLimitsAreRemembered(t *testing.T) {
	const keep = "    limits[text], count = c, count + 1\n"
	useFiles(t, func(text string) string {
		text = strings.Replace(text, "local MOST, LONGEST = 256,", "local MOST, LONGEST = 3,", 1)
		return strings.Replace(text, keep, keep+`
    local kept = 0
    for _ in pairs(limits) do kept = kept + 1 end
    if kept > MOST then error('too many limits are kept') end
`, 1)
	})
	client, clock := connect(t), func() weir.Micros { return 1_790_000_000_000_000 }
	functions := storeOn(t, client, Options{Clock: clock})
	scripts := onScripts(storeOn(t, client, Options{Clock: clock, Prefix: "scripts:"}))
	// Somebody else calls the function of another algorithm with the text of a limit.
	wrong := newRequest([]*check{functions.checkOf(take, []weir.Op{{Key: "k", Limit: weir.MustCompile("sliding_window 9/1h"), Cost: 1}})}, 0)
	testkit.Must(functions.link.client.Eval(t.Context(), fcall, functions.library.function(fixedWindowSingles), []string{"weir:k"}, wrong.encode(1)))(t)
	texts := []string{"sliding_window 9/1h", "token_bucket 9/1h", "leaky_bucket 9/1h", "fixed_window 9/1h", "sliding_log 9/1h", "sliding_buckets 9/1h", "token_bucket 8/1h", "in_flight 9/1h"}
	for range 3 {
		for i, text := range texts {
			ops := []weir.Op{
				{Key: text, Limit: weir.MustCompile(text), Cost: 4},
				{Key: text, Limit: weir.MustCompile(texts[(i+1)%len(texts)]), Cost: 2},
			}
			for n := 1; n <= len(ops); n++ {
				got := testkit.Must(functions.Take(t.Context(), nil, ops[:n]...))(t)
				if want := testkit.Must(scripts.Take(t.Context(), nil, ops[:n]...))(t); !slices.Equal(got, want) {
					t.Fatalf("%s: %+v, as a script %+v", text, got, want)
				}
			}
		}
	}
}

// Each kind of call has its function and, as a script, no file that it does not need.
func TestEntries(t *testing.T) {
	client := connect(t)
	bucket, fixed, window := "token_bucket 5/1m", "fixed_window 5/1m", "sliding_window 5/1m"
	log, sub := "sliding_log 5/1m", "sliding_buckets 5/1m"
	compiled := map[string]*weir.Compiled{}
	for way, use := range ways {
		s := use(storeOn(t, client, Options{}))
		used := map[entry]bool{nothing: true}
		for _, c := range []struct {
			entry    entry
			without  string
			requests []string // of limits, with + between them
		}{
			{bucketSingles, "function FIXED_WINDOW.", []string{bucket}},
			{bucketSingles, "function LOG.", []string{"leaky_bucket 5/1m", "back " + bucket}},
			{fixedWindowSingles, "function BUCKET.", []string{fixed, fixed}},
			{slidingWindowSingles, "function FIXED_WINDOW.", []string{window}},
			{logSingles, "function SUB_WINDOWS.", []string{"back " + log, log}},
			{subWindowSingles, "function LOG.", []string{sub}},
			{anyRequests, "function LOG.", []string{bucket, fixed}},
			{anyRequests, "function singles", []string{bucket + "+" + window, fixed}},
			{anyRequests, "function BUCKET.", []string{log, sub}},
			{anyRequests, "function holds", []string{"peek " + bucket + "+" + window}},
			{anyRequests, "function SUB_WINDOWS.", []string{"back " + log, "in_flight 5/1m+" + log}},
			{bucketHeld, "function holds", []string{"hold " + bucket, "leaky_bucket 5/1m"}},
			{fixedWindowHeld, "function BUCKET.", []string{"hold " + fixed}},
			{slidingWindowHeld, "function BUCKET.", []string{window, "hold " + window}},
			{anyHolds, "function singles", []string{"reset " + bucket}},
			{logHeld, "function SUB_WINDOWS.", []string{"hold " + log, "in_flight 5/1m"}},
			{subWindowHeld, "function holds", []string{"hold " + sub, sub}},
			{anyHolds, "function LOG.", []string{"hold sliding_buckets 5/1h buckets 129"}},
			{anyHolds, "function SUB_WINDOWS.", []string{"hold " + log + "+" + bucket}},
			{bucketMoved, "function FIXED_WINDOW.", []string{"moved " + bucket, "back " + bucket}},
			{fixedWindowMoved, "function holds", []string{"moved " + fixed}},
			{slidingWindowMoved, "function LOG.", []string{"moved " + window}},
			{logMoved, "function requests", []string{"moved " + log, "in_flight 5/1m"}},
			{subWindowMoved, "function LOG.", []string{"moved " + sub}},
			{anyHolds, "function singles", []string{"moved " + sub, bucket}},
			{anyHolds, "function singles", []string{"moved hold " + bucket}},
		} {
			var batch []*check
			many := int64(0)
			for _, limits := range c.requests {
				check := s.newCheck(take, 0)
				if text, is := strings.CutPrefix(limits, "moved "); is {
					limits, many = text, isMoved
				}
				for word, verb := range map[string]verb{"peek ": peek, "hold ": reserve, "back ": refund, "reset ": reset} {
					if text, is := strings.CutPrefix(limits, word); is {
						limits, check.verb = text, verb
					}
				}
				for text := range strings.SplitSeq(limits, "+") {
					if compiled[text] == nil {
						compiled[text] = weir.MustCompile(text)
					}
					op := weir.Op{Key: way, Limit: compiled[text], Cost: 1}
					check.addOp(op, s.keyOf(&op))
				}
				if check.verb == reserve {
					s.holds(check, weir.HoldID{1})
				}
				batch = append(batch, check)
			}
			r := newRequest(batch, many)
			if r.entry != c.entry {
				t.Errorf("%v: %s, want %s", c.requests, entries[r.entry].name, entries[c.entry].name)
			}
			used[r.entry] = true
			if text := s.library.script(r.entry, r.needs).text; strings.Contains(text, c.without) {
				t.Errorf("%v: the script has %q", c.requests, c.without)
			}
			if err := s.call(r); err != nil {
				t.Errorf("%s, %v: %v", way, c.requests, err)
			}
		}
		for e := range entries {
			if !used[entry(e)] {
				t.Errorf("%s: %s was not called", way, entries[e].name)
			}
		}
	}
}
