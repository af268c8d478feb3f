package redislink_test

import (
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/redislink"
	"github.com/weirhq/weir/internal/testredis"
)

func TestMain(m *testing.M) { testredis.VerifyMain(m) }

// A Redis that is not there is an error, as often as one asks; when it comes, the next
// one has a client, and all who ask have the same.
func TestLate(t *testing.T) {
	server := testredis.Start(t)
	server.Kill()
	late := redislink.NewLate(rueidis.ClientOption{
		InitAddress: []string{server.Addr}, ForceSingleClient: true, DisableCache: true,
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
	if again, err := late.Client(); err != nil || again != client {
		t.Errorf("the second who asks has another client: %v", err)
	}
}

// One that was closed makes no client any more.
func TestClose(t *testing.T) {
	late := redislink.NewLate(rueidis.ClientOption{InitAddress: []string{testredis.Start(t).Addr}, DisableCache: true})
	late.Close()
	late.Close()
	if _, err := late.Client(); err == nil {
		t.Error("a link that was closed has a client")
	}
}
