package redislink_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/redislink"
	"github.com/weirhq/weir/internal/testkit/testredis"
)

func TestMain(m *testing.M) { testredis.VerifyMain(m) }

// A Redis that is not there is an error, as often as one asks; when it comes, the next
// one has a client, and all who ask have the same.
func TestLate(t *testing.T) {
	server := testredis.Start(t)
	server.Kill()
	late := redislink.Late(func() (rueidis.Client, error) {
		return rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr}, ForceSingleClient: true, DisableCache: true})
	})
	defer late.Close()
	for range 3 {
		if _, err := late.Client(); err == nil {
			t.Fatal("there is a client of a server that is not there")
		}
	}
	server.Restart()
	var client rueidis.Client
	for deadline := time.Now().Add(2 * time.Minute); client == nil; time.Sleep(10 * time.Millisecond) {
		c, err := late.Client()
		if err == nil {
			client = c
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if err := client.Do(t.Context(), client.B().Ping().Build()).Error(); err != nil {
		t.Error(err)
	}
	if again, err := late.Client(); err != nil || again != client || current(late) != client {
		t.Errorf("the second who asks has another client: %v", err)
	}
	if err := late.Renew(); err != nil || current(late) == client {
		t.Errorf("the client is still the old one: %v", err)
	}
}

func current(l *redislink.Link) rueidis.Client {
	c, _ := l.Current()
	return c
}

// One that was closed makes no client any more.
func TestClose(t *testing.T) {
	addr := testredis.Start(t).Addr
	connect := func() (rueidis.Client, error) {
		return rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
	}
	late := redislink.Late(connect)
	late.Close()
	late.Close()
	if _, err := late.Client(); err == nil {
		t.Error("a link that was closed has a client")
	}
	if late.Renew() == nil {
		t.Error("a link that was closed connects")
	}

	// Somebody else's client is left alone.
	client, err := connect()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	theirs := redislink.Of(client)
	if theirs.Renew() == nil || current(theirs) != client {
		t.Error("somebody else's client was replaced")
	}
	theirs.Close()
	if err := client.Do(t.Context(), client.B().Ping().Build()).Error(); err != nil {
		t.Errorf("somebody else's client was closed: %v", err)
	}
}

func TestUnavailable(t *testing.T) {
	server := testredis.Start(t)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr}, ForceSingleClient: true, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	do := func(words ...string) error {
		return client.Do(t.Context(), client.B().Arbitrary(words...).Build()).Error()
	}
	if err := do("NONSENSE"); err == nil || redislink.Unavailable(err) {
		t.Errorf("an unknown command: %v", err)
	}
	if redislink.Unavailable(nil) || redislink.Unavailable(errors.New("OOM is not from Redis")) {
		t.Error("an error that is not from Redis is a reply")
	}
	for _, c := range []struct{ name, value string }{{"maxmemory", "1"}, {"min-replicas-to-write", "1"}} {
		if err := do("CONFIG", "SET", c.name, c.value); err != nil {
			t.Fatal(err)
		}
		if err := do("SET", "key", "value"); !redislink.Unavailable(fmt.Errorf("wrapped: %w", err)) {
			t.Errorf("%s: %v", c.name, err)
		}
		if err := do("CONFIG", "SET", c.name, "0"); err != nil {
			t.Fatal(err)
		}
	}
}
