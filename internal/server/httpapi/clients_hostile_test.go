package httpapi

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/clients"
	"github.com/weirhq/weir/internal/redislink"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/rule"
)

// Invented API keys, also such as are names of clients, get 401 and take nothing: no place in the store, and no memory. The
// real client is answered meanwhile.
func TestInventedKeys(t *testing.T) {
	s := newStatsStand(t, Options{})
	d, problems, err := rule.ReadDirectory("", strings.NewReader(strings.Join(someClients, "\n")))
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	s.engine.InstallClients(engine.Clients{Directory: d, DenyUnknown: true})
	ask := func(key string) (a CheckAnswer) {
		s.call("POST /v1/check", fmt.Sprintf(`{"api_key": %q, "ip": "192.0.2.1", "path": "/api/x"}`, key)).want(t, 200, &a)
		return a
	}
	for _, key := range []string{"user:ann", "org:acme", "user:bob", "f2cdc8c72fd298956aef69228aa88a4d", "sha256:f2cdc8c72fd298956aef69228aa88a4d", "api_key:sha256:f2cdc8c72fd298956aef69228aa88a4d", "api_key:ann-key-1", "ANN-KEY-1", "ann-key-1 "} {
		if a := ask(key); a.Allowed || a.Reason != "unknown_client" || a.Status != http.StatusUnauthorized {
			t.Errorf("%q is taken for a client: %+v", key, a)
		}
	}
	invented, invent := 200_000, 0
	if testkit.Race {
		invented = 20_000
	}
	attack := func(n int) {
		req := rule.Request{IP: netip.MustParseAddr("192.0.2.1"), Path: "/api/x"}
		var v engine.Verdict
		for ; n > 0; n, invent = n-1, invent+1 {
			req.APIKey = fmt.Sprint("invented-", invent)
			if err := s.engine.Check(t.Context(), &req, &v); err != nil || v.Allowed || v.Reason != engine.UnknownClient {
				t.Fatalf("%s: %+v, %v", req.APIKey, v, err)
			}
			if n%10_000 == 0 {
				if a := ask("ann-key-1"); !a.Allowed {
					t.Fatalf("the real client is denied after %d keys: %+v", invent, a)
				}
				s.pass(1)
			}
		}
	}
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // what was found useless by the first
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	attack(invented / 10) // until everything is as large as it gets
	before := heap()
	attack(invented)
	if grown := heap() - before; grown > 4<<20 {
		t.Errorf("%d invented keys take %d bytes", invented, grown)
	}
}

// Whoever moves clients at the same time, over several instances, nobody ever sees one that is above itself.
func TestConcurrentMoves(t *testing.T) {
	server := testredis.Start(t)
	var names []string
	for _, kind := range []string{"user", "team", "org", "project"} {
		names = append(names, kind+":1", kind+":2")
	}
	var registries []*clients.Registry
	var stands []*stand
	for range 2 {
		client := testkit.Must(rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr}, ForceSingleClient: true, DisableCache: true, DisableRetry: true}))(t)
		t.Cleanup(client.Close)
		store := testkit.Must(clients.NewRedis(redislink.Of(client).Client, clients.RedisOptions{}))(t)
		r := clients.New(clients.Options{Store: store, Logger: slog.New(slog.DiscardHandler)})
		testkit.OK(t, r.Look(t.Context()))
		registries = append(registries, r)
		o := Options{Service: manage.Service{Clients: r}}
		o.Limits.Calls = weir.Limit{N: 1_000_000, Period: time.Second} // the clock stands still
		stands = append(stands, newStand(t, o))
	}
	stands[0].call("POST /v1/clients/import", `{"client":"`+strings.Join(names, "\"}\n{\"client\":\"")+`"}`).want(t, 200, nil)
	list := func(s *stand) map[string]string {
		r := direct(s, "GET", "/v1/clients?limit=1000", "")
		var a EntriesAnswer
		r.want(t, 200, &a)
		parents := map[string]string{}
		for _, e := range a.Clients {
			parents[e.Client] = e.Parent
		}
		return parents
	}
	var writing, reading sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	for writer := range 8 {
		writing.Go(func() {
			random := rand.New(rand.NewPCG(uint64(writer), 11))
			for range 60 {
				name, parent := names[random.IntN(len(names))], names[random.IntN(len(names))]
				r := direct(stands[writer%2], "PATCH", "/v1/clients/"+name, fmt.Sprintf(`{"parent": %q}`, parent))
				mu.Lock()
				statuses[r.StatusCode]++
				mu.Unlock()
			}
		})
	}
	over := make(chan struct{})
	for i, s := range stands {
		reading.Go(func() {
			for last := false; !last; {
				select {
				case <-over:
					last = true
				default:
				}
				testkit.OK(t, registries[i].Look(t.Context()))
				parents := list(s)
				for name := range parents {
					line := []string{name}
					for at := parents[name]; at != ""; at = parents[at] {
						if line = append(line, at); len(line) > rule.MaxLine || slices.Contains(line[:len(line)-1], at) {
							t.Errorf("instance %d has the line %v", i, line)
							return
						}
					}
				}
			}
		})
	}
	writing.Wait()
	close(over)
	reading.Wait()
	if one, other := list(stands[0]), list(stands[1]); fmt.Sprint(one) != fmt.Sprint(other) || len(one) != len(names) {
		t.Errorf("the instances have %v and %v", one, other)
	}
	if statuses[200] < 20 || statuses[400] < 20 {
		t.Errorf("the moves had the statuses %v", statuses)
	}
}

// One page of many clients is no longer than a page, and takes no more memory than one; all pages have all.
func TestPagesOfManyClients(t *testing.T) {
	const many = 20_000
	r := clients.New(clients.Options{Logger: slog.New(slog.DiscardHandler)})
	note := strings.Repeat("n", 100)
	var changes []clients.Change
	for i := range many {
		changes = append(changes, clients.Change{Client: rule.Client{Name: fmt.Sprintf("user:%05d", i), Note: note}})
		if len(changes) == clients.MaxChanges {
			testkit.Must(r.Apply(t.Context(), "test", changes))(t)
			changes = nil
		}
	}
	s := newStand(t, Options{Service: manage.Service{Clients: r}})
	s.call("GET /v1/clients?limit=20000", "").want(t, 400, nil)
	var page EntriesAnswer
	var length int
	const bound = 8 << 20
	if used := testkit.Least(bound, func() {
		page = EntriesAnswer{}
		length = len(s.call("GET /v1/clients?limit=1000", "").want(t, 200, &page).body)
	}); used > bound || length > 1<<20 || len(page.Clients) != clients.MaxPage {
		t.Errorf("a page of %d clients and %d bytes took %d bytes", len(page.Clients), length, used)
	}
	seen := 0
	for after := ""; ; after = page.Next {
		page = EntriesAnswer{}
		s.call("GET /v1/clients?limit=1000&after="+after, "").want(t, 200, &page)
		for _, e := range page.Clients {
			if e.Client != fmt.Sprintf("user:%05d", seen) {
				t.Fatalf("%s is number %d", e.Client, seen)
			}
			seen++
		}
		if page.Next == "" {
			break
		}
	}
	if seen != many {
		t.Errorf("the pages have %d of %d clients", seen, many)
	}
}
