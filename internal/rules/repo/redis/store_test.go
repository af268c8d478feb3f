package redis

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/redislink"
	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/rules/repo/repotest"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
)

func openStore(t *testing.T, server *testredis.Server, prefix, user string) *Store {
	t.Helper()
	client := testkit.Must(rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{server.Addr}, ForceSingleClient: true, DisableCache: true, Username: user, Password: "any",
	}))(t)
	t.Cleanup(client.Close)
	return testkit.Must(OpenStore(redislink.Of(client).Client, Options{Prefix: prefix, Timeout: 10 * time.Second}, repo.StoreOptions{Name: "overrides", Most: repotest.Most}))(t)
}

// The suite passes with messages alone, and without any.
func TestStore(t *testing.T) {
	server := testredis.Start(t)
	for user, acl := range map[string]string{"told": "+subscribe", "deaf": "-subscribe"} {
		server.Do("ACL", "SETUSER", user, "on", "nopass", "~*", "+@all", acl, "allchannels")
	}
	var rooms atomic.Int64
	suite := func(user string, poll time.Duration) func(t *testing.T) {
		return func(t *testing.T) {
			repotest.RunStore(t, func(t *testing.T) func() repo.Store {
				prefix := fmt.Sprint("test", rooms.Add(1), ":")
				return func() repo.Store {
					p := openStore(t, server, prefix, user)
					p.poll = poll
					return p
				}
			})
		}
	}
	t.Run("Told", suite("told", time.Hour))
	t.Run("Deaf", suite("deaf", 10*time.Millisecond))
}

// Something else under the key, and a Redis that is gone, are errors that say so.
func TestStoreTrouble(t *testing.T) {
	server := testredis.Start(t)
	p := openStore(t, server, "", "default")
	server.Do("SET", "weir:{overrides}", "x")
	if _, _, err := p.Read(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "something else uses the key weir:{overrides}") {
		t.Error(err)
	}
	p.Timeout = 100 * time.Millisecond
	server.Kill()
	if _, _, err := p.Read(t.Context(), ""); err == nil {
		t.Error("it was read")
	}
	if err := p.Write(t.Context(), "", []byte("x")); err == nil {
		t.Error("it was written")
	}
}
