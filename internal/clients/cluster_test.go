package clients

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/redislink"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
)

// together returns instances that share a Redis of several nodes.
func together(t *testing.T, o rueidis.ClientOption) func() *Registry {
	o.DisableCache, o.DisableRetry = true, true
	return func() *Registry {
		t.Helper()
		client := testkit.Must(rueidis.NewClient(o))(t)
		t.Cleanup(client.Close)
		return New(Options{Store: testkit.Must(NewRedis(redislink.Of(client).Client, RedisOptions{Timeout: 10 * time.Second}))(t)})
	}
}

// importing imports clients into the first of some instances before, while and after something disturbs it, as a caller does who repeats
// what was not acknowledged. Then every instance, and a new one, has the same clients, and each call is there as a whole. How many calls are not
// there is returned; when they are repeated, every client is there.
func importing(t *testing.T, begin func() *Registry, disturb func()) (lost int) {
	writer, reader := begin(), begin()
	look(t, reader)
	const each, around = 10, 20
	var all []Change
	send := func(changes []Change) {
		t.Helper()
		eventually(t, func() bool {
			outcomes, err := writer.Apply(t.Context(), "ann", changes)
			for _, o := range outcomes {
				err = errors.Join(err, o.Err)
			}
			if err != nil && reason(err) != Unavailable && reason(err) != Busy {
				t.Fatal(err)
			}
			return err == nil
		})
	}
	call := func() {
		t.Helper()
		n := len(all) / each
		all = append(all, put(t, fmt.Sprintf(`{"client": "org:%d"}`, n)))
		for i := range each - 1 {
			all = append(all, put(t, fmt.Sprintf(`{"client": "user:%d-%d", "parent": "org:%d"}`, n, i, n)))
		}
		send(all[n*each:])
	}
	for range around {
		call()
	}
	disturbed := make(chan struct{})
	go func() {
		defer close(disturbed)
		disturb()
	}()
	for after := 0; after < around; call() {
		select {
		case <-disturbed:
			after++
		default:
		}
	}
	agree := func() {
		t.Helper()
		for name, r := range map[string]*Registry{"writer": writer, "reader": reader, "new one": begin()} {
			eventually(t, func() bool { return r.Look(t.Context()) == nil })
			if text(r) != text(writer) {
				t.Errorf("the %s has %d clients, and the writer %d: %+v", name, r.Count(), writer.Count(), r.Status())
			}
		}
	}
	agree()
	for n := range len(all) / each {
		there := 0
		for _, c := range all[n*each : (n+1)*each] {
			if _, known := writer.Get(c.Client.Name); known {
				there++
			}
		}
		if there == 0 {
			lost++
		} else if there < each {
			t.Errorf("%d clients of call %d are there", there, n)
		}
	}
	for changes := range slices.Chunk(all, MaxChanges) {
		send(changes)
	}
	if agree(); writer.Count() != len(all) {
		t.Errorf("it has %d clients of %d", writer.Count(), len(all))
	}
	return lost
}

// The keys of the directory are on one slot of a cluster, and every client is there after a failover within an import.
func TestCluster(t *testing.T) {
	cluster := testredis.StartCluster(t)
	slot := cluster.SlotOf("weir:{clients}:entries")
	if lost := importing(t, together(t, rueidis.ClientOption{InitAddress: cluster.Addrs}), func() { cluster.FailOver(cluster.MasterOf(slot)) }); lost > 0 {
		t.Errorf("%d calls are lost", lost)
	}
	if n := len(cluster.MasterOf(slot).List("KEYS", "weir:{clients}:*")); n != 3 {
		t.Errorf("the slot has %d keys", n)
	}
}

// A failover by Sentinel loses what the old master acknowledges until it knows of it. All instances lose the same.
func TestSentinel(t *testing.T) {
	sentinel := testredis.StartSentinel(t)
	begin := together(t, rueidis.ClientOption{InitAddress: sentinel.Addrs, Sentinel: rueidis.SentinelOption{MasterSet: sentinel.MasterName}})
	t.Logf("%d calls were lost", importing(t, begin, sentinel.FailOver))
}
