package redis

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/weirhq/weir/internal/redislink"
	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/rules/repo/repotest"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/rule"
	_ "github.com/weirhq/weir/rule/rulefile"
)

func TestMain(m *testing.M) { testredis.VerifyMain(m) }

func clientOf(t *testing.T, server *testredis.Server) rueidis.Client {
	t.Helper()
	return clientWith(t, rueidis.ClientOption{InitAddress: []string{server.Addr}, ForceSingleClient: true})
}

func clientWith(t *testing.T, o rueidis.ClientOption) rueidis.Client {
	t.Helper()
	o.DisableCache, o.DisableRetry = true, true
	o.PipelineMultiplex = -1 // one connection, as weir has
	o.Dialer.Timeout = 10 * time.Second
	o.ConnWriteTimeout = max(o.ConnWriteTimeout, 10*time.Second)
	client, err := rueidis.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func open(t *testing.T, client rueidis.Client, o Options) *Repository {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second // the race detector and a busy machine are slow
	}
	r, err := Open(redislink.Of(client).Client, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// force puts a document there with the next number, as somebody would do it by hand.
func force(server *testredis.Server, prefix string, source []byte) {
	key := prefix + "{rules}:current"
	number, _ := strconv.Atoi(server.Do("HGET", key, "number"))
	server.Do("HSET", key, "number", strconv.Itoa(number+1), "source", string(source))
}

// The suite passes with messages alone, without any, and on everything that is Redis.
func TestSuite(t *testing.T) {
	server := testredis.Start(t)
	var places atomic.Int64
	suite := func(client func(t *testing.T) rueidis.Client, poll time.Duration) func(t *testing.T) {
		return func(t *testing.T) {
			t.Parallel() // it mostly waits
			repotest.Run(t, func(t *testing.T) repotest.Place {
				prefix := fmt.Sprint("test", places.Add(1), ":")
				return repotest.Place{
					Open: func() repo.Repository {
						r := open(t, client(t), Options{Prefix: prefix})
						r.poll = poll
						return r
					},
					Force: func(source []byte) {
						force(server, prefix, source)
						if poll > time.Minute { // it would never poll
							server.Do("PUBLISH", prefix+"{rules}:changed", "by hand")
						}
					},
				}
			})
		}
	}
	each := func(t *testing.T) rueidis.Client { return clientOf(t, server) }
	t.Run("Told", suite(each, time.Hour))
	// A user who may not listen is told nothing.
	server.Do("ACL", "SETUSER", "deaf", "on", "nopass", "~*", "+@all", "-subscribe", "allchannels")
	deaf := func(t *testing.T) rueidis.Client {
		return clientWith(t, rueidis.ClientOption{InitAddress: []string{server.Addr}, ForceSingleClient: true, Username: "deaf", Password: "any"})
	}
	t.Run("PollOnly", suite(deaf, 100*time.Millisecond))
}

func current(t *testing.T, r *Repository) repo.Version {
	t.Helper()
	v, err := r.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func write(t *testing.T, r *Repository, source []byte) repo.Version {
	t.Helper()
	v, err := r.Write(t.Context(), repo.Draft{Base: current(t, r).Number, Author: "test", Source: source})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func documentOf(n int) []byte {
	return []byte("# document " + strconv.Itoa(n) + "\nrules:\n  - {id: a, key: ip, limit: " + strconv.Itoa(n) + "/1m}\n")
}

func TestOpen(t *testing.T) {
	if _, err := Open(nil, Options{}); err == nil || !strings.Contains(err.Error(), "requires a client") {
		t.Errorf("Open without a client = %v", err)
	}
	server := testredis.Start(t)
	client := clientOf(t, server)
	if _, err := Open(redislink.Of(client).Client, Options{Timeout: -1}); err == nil || !strings.Contains(err.Error(), "Timeout is negative") {
		t.Errorf("Open = %v", err)
	}
	r := open(t, client, Options{})
	if v := current(t, r); v.Number != 0 || v.Source != nil {
		t.Errorf("at first there is %+v", v)
	}
	if keys := server.Do("KEYS", "*"); keys != "" {
		t.Errorf("to look has made keys: %s", keys)
	}
	write(t, r, documentOf(1))
	keys := strings.Fields(server.Do("KEYS", "*"))
	if len(keys) != 3 {
		t.Errorf("there are the keys %q", keys)
	}
	for _, key := range keys {
		if !strings.HasPrefix(key, "weir:{rules}:") || server.Do("TTL", key) != "-1" {
			t.Errorf("%s expires in %s s", key, server.Do("TTL", key))
		}
	}
}

// Two prefixes are two documents.
func TestPrefix(t *testing.T) {
	client := clientOf(t, testredis.Start(t))
	a, b := open(t, client, Options{Prefix: "a:"}), open(t, client, Options{Prefix: "{b}:"})
	w := repotest.Watch(t, b)
	w.WaitVersion(0)
	write(t, a, documentOf(1))
	write(t, b, documentOf(2))
	if v := w.WaitVersion(1).Version; string(v.Source) != string(documentOf(2)) {
		t.Errorf("b has %s", v.Source)
	}
	if v := current(t, a); string(v.Source) != string(documentOf(1)) {
		t.Errorf("a has %s", v.Source)
	}
}

// What is kept is bounded in bytes, too, and the current version is always kept.
func TestHistoryBytes(t *testing.T) {
	server := testredis.Start(t)
	r := open(t, clientOf(t, server), Options{})
	r.maxBytes = 10_000
	for i, want := range []int{1, 2, 3, 3, 1} {
		size := 3000
		if i == 4 {
			size = 20_000
		}
		last := write(t, r, append(documentOf(i+1), []byte("#"+strings.Repeat("x", size))...))
		history, err := r.History(t.Context())
		if err != nil || len(history) != want || history[0].Number != last.Number {
			t.Errorf("%d versions are kept, %v, want %d", len(history), err, want)
		}
		if n := server.Do("HLEN", "weir:{rules}:sources"); n != strconv.Itoa(want) {
			t.Errorf("%s sources are kept", n)
		}
	}
}

// Whatever there is in place of the keys is an error, or as good as nothing, and is
// never taken for rules.
func TestForeignKeys(t *testing.T) {
	server := testredis.Start(t)
	r := open(t, clientOf(t, server), Options{})
	for _, key := range []string{"current", "history", "sources"} {
		server.Do("FLUSHALL")
		server.Do("SET", "weir:{rules}:"+key, "what")
		_, err := r.Write(t.Context(), repo.Draft{Source: documentOf(1)})
		if err == nil || !strings.Contains(err.Error(), "something else uses one of the keys") || !strings.Contains(err.Error(), "WRONGTYPE") {
			t.Errorf("%s: Write = %v", key, err)
		}
		if got := server.Do("GET", "weir:{rules}:"+key); got != "what" {
			t.Errorf("%s: it was overwritten: %s", key, got)
		}
	}
	const key = "weir:{rules}:current"
	for name, c := range map[string]struct {
		command []string
		want    string
	}{
		"no number":     {[]string{"HDEL", key, "number"}, `"" is not a version`},
		"a bad number":  {[]string{"HSET", key, "number", "1e400"}, `"1e400" is not a version`},
		"a huge number": {[]string{"HSET", key, "number", "9223372036854775807"}, `is not a version`},
		"too large":     {[]string{"HSET", key, "number", "5", "source", strings.Repeat("#", rule.MaxDocument+1)}, "has 4194305 bytes"},
		"no document":   {[]string{"HSET", key, "number", "5", "source", "rules: ["}, "version 5 in Redis cannot be used"},
		"no text":       {[]string{"HSET", key, "number", "5", "source", "\xff\x00", "time", "noon", "sha256", "\r\n"}, "version 5 in Redis cannot be used"},
	} {
		server.Do("FLUSHALL")
		v := write(t, r, documentOf(1))
		w := repotest.Watch(t, r)
		w.WaitVersion(1)
		server.Do(c.command...)
		if call := w.WaitError(1); !strings.Contains(call.Err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, call.Err, c.want)
		}
		if now := current(t, r); now.Number != v.Number || string(now.Source) != string(v.Source) {
			t.Errorf("%s: Current = %+v", name, now)
		}
		next := write(t, r, documentOf(2))
		if next.Number < 2 || next.Number > 6 {
			t.Errorf("%s: the next version is %d", name, next.Number)
		}
		w.WaitVersion(next.Number)
	}
}

// Without the current key there is still the history.
func TestCurrentIsGone(t *testing.T) {
	server := testredis.Start(t)
	r := open(t, clientOf(t, server), Options{})
	write(t, r, documentOf(1))
	write(t, r, documentOf(2))
	w := repotest.Watch(t, r)
	w.WaitVersion(2)
	server.Do("DEL", "weir:{rules}:current")
	if c := w.WaitError(2); !strings.Contains(c.Err.Error(), "version 2 of the history is used") {
		t.Errorf("the trouble is %v", c.Err)
	}
	server.Do("HDEL", "weir:{rules}:sources", "2")
	if v := current(t, r); v.Number != 1 {
		t.Errorf("Current = %+v", v)
	}
	if v := write(t, r, documentOf(3)); v.Number != 3 {
		t.Errorf("Write = %+v", v)
	}
	w.WaitVersion(3)
}

// The first version may come while somebody looks: that nothing was there before does
// not mean that it was lost.
func TestFirstVersionComesInBetween(t *testing.T) {
	server := testredis.Start(t)
	r := open(t, clientOf(t, server), Options{})
	s, err := r.readState(t.Context(), mark{number: "unknown"})
	if err != nil {
		t.Fatal(err)
	}
	write(t, r, documentOf(1))
	if err := r.judge(t.Context(), s); err != nil || s.trouble != nil || s.version == nil || s.version.Number != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}
