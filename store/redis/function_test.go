package redis

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
)

// takes charges a unit, and fails unless exactly that is charged.
func takes(t *testing.T, s *Store, remaining int64) {
	t.Helper()
	op := weir.Op{Key: "k", Limit: weir.MustCompile("fixed_window 100/1000d"), Cost: 1}
	if d := testkit.Must(s.Take(t.Context(), nil, op))(t); !d[0].Allowed || d[0].Remaining != remaining {
		t.Fatalf("%+v, want %d remaining", d[0], remaining)
	}
}

// callsOf is how often Redis has run a command since its statistics were reset.
func callsOf(t *testing.T, client rueidis.Client, command string) string {
	t.Helper()
	calls := regexp.MustCompile(`cmdstat_` + regexp.QuoteMeta(command) + `:calls=(\d+)`).FindStringSubmatch(run(t, client, "INFO", "commandstats"))
	if calls == nil {
		return "0"
	}
	return calls[1]
}

// The library is loaded when it is missing, at first and after it was deleted. Until then scripts do what
// functions would do, and afterwards there are none.
func TestFunctionsAreLoaded(t *testing.T) {
	server := testredis.Start(t)
	client := clientOf(t, server)
	s := open(t, patient(server.Addr))
	for n := range int64(3) {
		takes(t, s, 99-2*n)
		eventually(t, "the library", func() bool { return len(libraries(t, client)) == 1 && !s.functions.loading.Load() })
		run(t, client, "CONFIG", "RESETSTAT")
		takes(t, s, 98-2*n)
		if fcalls, scripts := callsOf(t, client, "fcall"), callsOf(t, client, "evalsha"); fcalls != "1" || scripts != "0" {
			t.Errorf("%s calls of functions and %s of scripts, want 1 and 0", fcalls, scripts)
		}
		run(t, client, "FUNCTION", "DELETE", s.library.name)
	}
	if err := s.ScriptsBecause(); err != nil {
		t.Error(err)
	}
}

// Two versions share one Redis, each with its library.
func TestVersionsOfTheLibrary(t *testing.T) {
	client := connect(t)
	one := storeOn(t, client, Options{})
	useFiles(t, func(text string) string { return text + "-- a comment\n" })
	two := storeOn(t, client, Options{})
	takes(t, one, 99)
	takes(t, two, 98)
	takes(t, one, 97)
	if got := libraries(t, client); len(got) != 2 {
		t.Errorf("the libraries are %v", got)
	}
}

// Many stores that begin at once all have their answers, and then functions.
func TestManyStoresLoad(t *testing.T) {
	server := testredis.Start(t)
	limit := weir.MustCompile("fixed_window 100/1000d")
	var wg sync.WaitGroup
	for range 20 {
		s := open(t, patient(server.Addr))
		wg.Go(func() {
			for range 10 {
				if _, err := s.Take(t.Context(), nil, weir.Op{Key: "k", Limit: limit, Cost: 1}); err != nil {
					t.Error(err)
				}
			}
			if err := s.ScriptsBecause(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s := open(t, patient(server.Addr))
	if d := testkit.Must(s.Peek(t.Context(), nil, weir.Op{Key: "k", Limit: limit, Cost: 1}))(t); d[0].Remaining != 0 {
		t.Errorf("200 were taken from 100: %+v", d[0])
	}
}

// Where Redis has no functions, or the user has no right to them, scripts do everything, and the store says
// why.
func TestWithoutFunctions(t *testing.T) {
	for what, c := range map[string]struct {
		flags, user []string
		why         string
	}{
		"an older Redis":   {flags: []string{"--rename-command", "FCALL", "", "--rename-command", "FUNCTION", ""}, why: "unknown command"},
		"no loading":       {flags: []string{"--rename-command", "FUNCTION", ""}, why: "unknown command"},
		"no right to call": {user: []string{"~*", "+@all", "-fcall"}, why: "'fcall'"},
		"no right to load": {user: []string{"~*", "+@all", "-function"}, why: "'function|load'"},
		"few rights":       {user: slices.DeleteFunc(strings.Fields(rights(t))[3:], func(right string) bool { return right == "+fcall" || right == "+function|load" }), why: "'fcall'"},
	} {
		t.Run(what, func(t *testing.T) {
			server := testredis.Start(t, c.flags...)
			if c.user != nil {
				server.Do(append([]string{"ACL", "SETUSER", "weir", "on", ">change-me"}, c.user...)...)
			}
			url := patient(server.Addr)
			if c.user != nil {
				url = "redis://weir:change-me@" + server.Addr + "?timeout=30s"
			}
			s := open(t, url)
			takes(t, s, 99)
			eventually(t, "the reason", func() bool { return s.ScriptsBecause() != nil })
			if err := s.ScriptsBecause(); !strings.Contains(err.Error(), c.why) {
				t.Errorf("scripts because %v, want %q", err, c.why)
			}
			client := clientOf(t, server)
			run(t, client, "CONFIG", "RESETSTAT")
			takes(t, s, 98)
			everything(t, s)
			if got := callsOf(t, client, "fcall"); got != "0" {
				t.Errorf("%s calls of functions", got)
			}
		})
	}
}

// A client that cannot load uses scripts.
func TestClientWithoutLoad(t *testing.T) {
	client := connect(t)
	s := testkit.Must(NewOn(plainClient{native{link: storeOn(t, client, Options{}).link.made}}, Options{}))(t)
	t.Cleanup(s.Close)
	takes(t, s, 99)
	if err := s.ScriptsBecause(); err == nil || !strings.Contains(err.Error(), "Load") {
		t.Errorf("scripts because %v", err)
	}
}

// plainClient has only the methods of Client.
type plainClient struct{ Client }

// A Redis whose memory is full calls no function, not even to read. Scripts are run until they write, so a
// limit that is used up denies, and what removes keys does so.
func TestFunctionsAtFullMemory(t *testing.T) {
	server := testredis.Start(t)
	client := clientOf(t, server)
	s := storeOn(t, client, Options{})
	op := weir.Op{Key: "k", Limit: weir.MustCompile("fixed_window 1/1000d"), Cost: 1}
	other := weir.Op{Key: "other", Limit: op.Limit, Cost: 1}
	testkit.Must(s.Take(t.Context(), nil, op))(t)
	server.FillMemory()
	if d, err := s.Take(t.Context(), nil, op); err != nil || d[0].Allowed {
		t.Errorf("a limit that is used up: %+v %v", d, err)
	}
	if d, err := s.Peek(t.Context(), nil, op); err != nil || d[0].Remaining != 0 {
		t.Errorf("a look: %+v %v", d, err)
	}
	if _, err := s.Take(t.Context(), nil, other); !saysAny(errors.Unwrap(err), "OOM") {
		t.Errorf("a charge: %v", err)
	}
	testkit.OK(t, s.Reset(t.Context(), op))
	if err := s.ScriptsBecause(); err != nil {
		t.Errorf("scripts for good: %v", err)
	}
	run(t, client, "FUNCTION", "FLUSH")
	if _, err := s.Peek(t.Context(), nil, op); err != nil {
		t.Error(err)
	}
	run(t, client, "CONFIG", "SET", "maxmemory", "0")
	eventually(t, "the library", func() bool {
		testkit.Must(s.Peek(t.Context(), nil, op))(t)
		return len(libraries(t, client)) == 1
	})
}

// Each master of a cluster has the library once a key of it was used, also one that a slot has moved to.
func TestFunctionsInACluster(t *testing.T) {
	cluster := testredis.StartSteadyCluster(t)
	s := open(t, clusterURL(cluster)+"?timeout=30s")
	limit := weir.MustCompile("fixed_window 100/1000d")
	masters := map[*testredis.Server]bool{}
	for _, use := range []string{"at first", "again"} {
		eventually(t, "the library on each master, "+use, func() bool {
			var nodes []*testredis.Server
			for i := range 50 {
				op := weir.Op{Key: fmt.Sprint("k", i), Limit: limit, Cost: 1}
				testkit.Must(s.Peek(t.Context(), nil, op))(t)
				if node := cluster.MasterOf(int(slotOf(s.keyOf(&op)))); !slices.Contains(nodes, node) {
					nodes = append(nodes, node)
				}
			}
			for _, node := range nodes {
				masters[node] = true
				if !strings.Contains(node.Do("FUNCTION", "LIST"), s.library.name) {
					return false
				}
			}
			return len(nodes) == 3
		})
		for node := range masters {
			node.Do("FUNCTION", "FLUSH")
		}
	}
	if err := s.ScriptsBecause(); err != nil {
		t.Error(err)
	}
}

// What a function that was called says is the answer, whatever it is: nothing is called again by a script.
func TestAnswersAreNotRefusals(t *testing.T) {
	s := &Store{}
	s.functions.loading.Store(true)
	for reply, want := range map[string]bool{
		"": false,
		"OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'": true,
		"ERR Function not found": true,
		"ERR unknown command `FCALL`, with args beginning with: `weir_1`":            true,
		"NOPERM User weir has no permissions to run the 'fcall' command":             true,
		"NOPERM No permissions to access a key":                                      false,
		"ERR user_function:1: oh no script: weir_1, on @user_function:1.":            false,
		"ERR user_function:1: unknown command, script: weir_1, on @user_function:1.": false,
		"unsupported command 'fcall'":                                                true, // of a proxy
		"WRONGTYPE Operation against a key":                                          false,
		"READONLY You can't write against a read only replica.":                      false,
		"BUSY Redis is busy running a script.":                                       false,
	} {
		var err error = saidError(reply)
		if reply == "" {
			err = context.DeadlineExceeded
		}
		if got := s.isRefused(err, "k"); got != want {
			t.Errorf("%q: %v", reply, got)
		}
	}
}

// saidError is an error of Redis.
type saidError string

func (r saidError) Error() string { return string(r) }
func (saidError) RedisError()     {}
