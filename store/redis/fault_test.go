package redis

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
)

// open opens a store whose calls end soon, unless the URL has a timeout: a test that wants
// an answer needs one, since on a busy machine any answer may take long.
func open(t *testing.T, url string) *Store {
	t.Helper()
	config, err := ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	if config.Options.Timeout == 0 {
		config.Options.Timeout = loadTimeout
	}
	s, err := config.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func single(addr string) string { return "redis://" + addr }

// patient is a server whose answers are waited for.
func patient(addr string) string { return single(addr) + "?timeout=30s" }

// A server that crashes and comes back empty has forgotten what was used: each of
// its lives allows N.
func TestKillAndRestart(t *testing.T) {
	server := testredis.Start(t)
	l := startLoad(t, open(t, single(server.Addr)))
	server.Kill()
	l.trips()
	server.Restart()
	l.check("kill -9 and restart", 2*tightN, l.servesAgain("the restart"))
}

func TestPauseLongerThanTheTimeout(t *testing.T) {
	server := testredis.Start(t)
	l := startLoad(t, open(t, single(server.Addr)))
	server.Pause()
	l.trips()
	server.Resume()
	l.check("pause", tightN, l.servesAgain("the pause"))
}

func TestLatency(t *testing.T) {
	server := testredis.Start(t)
	proxy := testredis.NewProxy(t, server)
	l := startLoad(t, open(t, single(proxy.Addr)))
	proxy.Latency(200 * time.Millisecond)
	l.trips()
	proxy.Heal()
	l.check("200 ms of latency", tightN, l.servesAgain("the latency"))
}

func TestResetInMidReply(t *testing.T) {
	server := testredis.Start(t)
	proxy := testredis.NewProxy(t, server)
	l := startLoad(t, open(t, single(proxy.Addr)))
	proxy.ResetMidReply(20)
	l.fails()
	proxy.Heal()
	l.check("connections reset in mid-reply", tightN, l.servesAgain("the resets"))
}

// Flushed functions and scripts cause no errors.
func TestScriptFlushUnderLoad(t *testing.T) {
	server := testredis.Start(t)
	l := startLoad(t, open(t, patient(server.Addr)))
	for range 20 {
		server.FlushScripts()
		l.servesAgain("a flush")
	}
	l.check("SCRIPT FLUSH", tightN, 0)
	if l.failed > 0 {
		t.Errorf("%d errors, the last %v", l.failed, l.lastErr)
	}
}

// Out of memory is an answer of Redis, told to the caller; nothing is charged.
func TestOutOfMemory(t *testing.T) {
	server := testredis.Start(t)
	l := startLoad(t, open(t, single(server.Addr)))
	server.FillMemory()
	l.wait("the reason", func() bool { return l.lastErr != nil && strings.Contains(l.lastErr.Error(), "OOM") })
	server.FreeMemory()
	l.check("out of memory", tightN, l.servesAgain("memory was free"))
}

// A replica says that it only reads, and serves as soon as it is made a master.
func TestReadonlyReplica(t *testing.T) {
	master := testredis.Start(t)
	replica := testredis.Replica(t, master)
	s := open(t, patient(replica.Addr))
	op := weir.Op{Key: "k", Limit: weir.MustCompile("5/1m"), Cost: 1}
	if _, err := s.Take(t.Context(), nil, op); err == nil || !strings.Contains(err.Error(), "READONLY") {
		t.Fatalf("Take = %v", err)
	}
	replica.Do("REPLICAOF", "NO", "ONE")
	l := startLoad(t, s)
	replica.Do("REPLICAOF", strings.Split(master.Addr, ":")[0], strings.Split(master.Addr, ":")[1])
	l.fails()
	replica.Do("REPLICAOF", "NO", "ONE")
	// As a replica it took over what its master has, which is nothing.
	l.check("READONLY", 2*tightN, l.servesAgain("promotion"))
}

// A key of another program is an error for calls that use it, and for no others.
func TestWrongTypeUnderLoad(t *testing.T) {
	server := testredis.Start(t)
	s := open(t, patient(server.Addr))
	op := weir.Op{Key: "foreign", Limit: weir.MustCompile("5/1m"), Cost: 1}
	server.Do("SADD", s.keyOf(&op), "m")
	l := startLoad(t, s)
	for range 50 {
		if _, err := s.Take(t.Context(), nil, op); err == nil || !strings.Contains(err.Error(), "this version of weir did not write") {
			t.Fatalf("Take = %v", err)
		}
	}
	batch := []*check{s.checkOf(take, []weir.Op{op}), s.checkOf(take, []weir.Op{op}), s.checkOf(take, []weir.Op{op})}
	testkit.OK(t, s.call(newRequest(batch, 0)))
	for i, c := range batch {
		if c.err == nil {
			t.Errorf("request %d of a call for a foreign key: %+v", i, c.decisions)
		}
	}
	always := weir.Op{Key: "own", Limit: op.Limit, Cost: 1, Always: true}
	foreign := op
	foreign.Always = true
	if _, err := s.Take(t.Context(), nil, always, foreign); err == nil || !strings.Contains(err.Error(), "this version of weir did not write") {
		t.Errorf("Take of what is charged always = %v", err)
	}
	l.check("a key of the wrong type", tightN, l.servesAgain("it"))
	if l.failed > 0 {
		t.Errorf("%d errors elsewhere, the last %v", l.failed, l.lastErr)
	}
	if err := s.Reset(t.Context(), op); err != nil {
		t.Errorf("Reset of a foreign key: %v", err)
	}
	if _, err := s.Take(t.Context(), nil, op); err != nil {
		t.Errorf("Take after Reset: %v", err)
	}
}

// Where it takes long to connect, calls share a connection: one that had to be made in
// the time of a call would be too late for it, again and again.
func TestFarAway(t *testing.T) {
	server := testredis.Start(t)
	proxy := testredis.NewProxy(t, server)
	for _, c := range []struct {
		latency time.Duration
		timeout string // a connection that takes a quarter of it is shared
		shared  bool
	}{{0, "30s", false}, {2 * time.Second, "7500ms", true}} {
		proxy.Latency(c.latency)
		s, err := Open("redis://" + proxy.Addr + "?timeout=" + c.timeout + "&dial_timeout=30s&client_name=far&prefix=" + c.latency.String() + ":")
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "a connection", func() bool { return s.Ping(t.Context()) == nil })
		limit := weir.MustCompile("token_bucket 1000/1s")
		eventually(t, "as many connections as there should be", func() bool { // on a busy machine, all of these may fit into one call
			var wg sync.WaitGroup
			for range 128 {
				wg.Go(func() {
					if _, err := s.Take(t.Context(), nil, weir.Op{Key: "k", Limit: limit, Cost: 1}); err != nil {
						t.Errorf("at %v: %v", c.latency, err)
					}
				})
			}
			wg.Wait()
			n := strings.Count(server.Do("CLIENT", "LIST"), "name=far")
			return c.shared && n == 1 || !c.shared && n > 1 && n <= 3+maxSending // one makes no calls, one may announce the store, one may look after Redis
		})
		s.Close()
	}
}
