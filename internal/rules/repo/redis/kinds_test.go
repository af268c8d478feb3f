package redis

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/rules/repo/repotest"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/store/redis"
)

// byURL is a client as weir makes it.
func byURL(t *testing.T, url string) rueidis.Client {
	t.Helper()
	config, err := redis.ParseURL(url + "?timeout=10s&dial_timeout=10s") // a busy machine is slow
	if err != nil {
		t.Fatal(err)
	}
	client, err := rueidis.NewClient(config.Client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// surviveFailOver has two instances go on when the master is another.
func surviveFailOver(t *testing.T, client func(t *testing.T) rueidis.Client, failOver func()) {
	t.Helper()
	r := open(t, client(t), Options{Timeout: 10 * time.Second})
	w := repotest.Watch(t, open(t, client(t), Options{Timeout: 10 * time.Second}))
	w.WaitVersion(0)
	v := write(t, r, documentOf(1))
	w.WaitVersion(v.Number)
	failOver()
	eventually(t, "a write", func() bool {
		now, err := r.Current(t.Context())
		if err != nil {
			return false
		}
		_, err = r.Write(t.Context(), repo.Draft{Base: now.Number, Source: documentOf(int(now.Number) + 1)})
		return err == nil
	})
	last := current(t, r)
	got := w.WaitVersion(last.Number).Version
	if string(got.Source) != string(last.Source) {
		t.Errorf("it was told of %s, and there is %s", got.Source, last.Source)
	}
}

func TestSentinel(t *testing.T) {
	s := testredis.StartSentinel(t)
	surviveFailOver(t, func(t *testing.T) rueidis.Client {
		return byURL(t, "redis+sentinel://"+strings.Join(s.Addrs, ",")+"/"+s.MasterName)
	}, s.FailOver)
}

func TestCluster(t *testing.T) {
	c := testredis.StartCluster(t)
	surviveFailOver(t, func(t *testing.T) rueidis.Client {
		return byURL(t, "redis+cluster://"+strings.Join(c.Addrs, ","))
	}, func() { c.FailOver(c.MasterOf(c.SlotOf("weir:{rules}:current"))) })
}

// rights are those that the rules need. The docs give the service more: store/redis/testdata/serve.acl.
const rights = "user weir on >change-me ~weir:* &weir:* -@all +eval +evalsha +ping +hello +auth +select +client|setname " +
	"+time +hget +hset +hdel +hmget +hkeys +hgetall +hexists +hstrlen +publish +subscribe +unsubscribe"

func TestRights(t *testing.T) {
	file := filepath.Join(t.TempDir(), "users.acl")
	if err := os.WriteFile(file, []byte(rights+"\nuser default on nopass ~* &* +@all\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := testredis.Start(t, "--aclfile", file)
	r := open(t, byURL(t, "redis://weir:change-me@"+server.Addr), Options{})
	r.poll = time.Hour // so that it takes a message
	w := repotest.Watch(t, r)
	w.WaitVersion(0)
	write(t, r, documentOf(1))
	w.WaitVersion(1)
	force(server, DefaultPrefix, documentOf(2))
	write(t, r, documentOf(3))
	w.WaitVersion(3)
	if history, err := r.History(t.Context()); err != nil || len(history) != 3 {
		t.Errorf("History = %+v, %v", history, err)
	}
	elsewhere := open(t, byURL(t, "redis://weir:change-me@"+server.Addr), Options{Prefix: "shop:"})
	if _, err := elsewhere.Write(t.Context(), repo.Draft{Source: documentOf(1)}); err == nil || !strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("Write under another prefix = %v", err)
	}
}
