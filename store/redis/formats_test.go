package redis

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
)

// instance is a store that announces itself when the test says so, by a clock of the test.
type instance struct {
	*Store
	now time.Time
}

// instanceOn returns one that can read these formats.
func instanceOn(t *testing.T, client rueidis.Client, formats ...int) *instance {
	t.Helper()
	i := &instance{storeOn(t, client, Options{Clock: new(fake).Now}), time.Now()}
	i.formats.own, i.formats.now = formats, func() time.Time { return i.now }
	return i
}

// later announces the instance as often as it would in a minute.
func (i *instance) later() {
	for range formatsTTL / announceEvery {
		i.now = i.now.Add(announceEvery)
		i.announce()
	}
}

func (i *instance) mustKnow(t *testing.T, want bool, when string) {
	t.Helper()
	if got := i.knows(2); got != want {
		t.Errorf("%s: the new format can be written: %v, want %v", when, got, want)
	}
	if !i.knows(firstFormat) {
		t.Errorf("%s: the first format can not be written", when)
	}
}

// A newer format is written only after no instance is left that cannot read it.
func TestFormats(t *testing.T) { testFormats(t, connect(t)) }

func TestFormatsInACluster(t *testing.T) { testFormats(t, clusterClient(t)) }

func testFormats(t *testing.T, client rueidis.Client) {
	older, newer := instanceOn(t, client, 1), instanceOn(t, client, 1, 2)
	newer.mustKnow(t, false, "before any answer")
	older.announce()
	newer.announce()
	newer.later()
	newer.mustKnow(t, false, "beside an older instance")
	older.mustKnow(t, false, "of the older instance")

	older.retract()
	newer.announce()
	newer.mustKnow(t, false, "right after the older one has left")
	newer.later()
	newer.mustKnow(t, true, "a minute after the older one has left")

	older.announce()
	newer.announce()
	newer.mustKnow(t, false, "when an older one has come back")

	// It crashes: nobody retracts it, and its entry expires.
	older.formats.ttl = time.Millisecond
	older.announce()
	eventually(t, "the end of the entry", func() bool {
		newer.announce()
		return run(t, client, "HLEN", "weir:%formats") == "1"
	})
	newer.later()
	newer.mustKnow(t, true, "a minute after the older one has crashed")

	another := instanceOn(t, client, 1, 2, 3)
	another.announce()
	another.later()
	another.mustKnow(t, true, "of one that is newer still")
	if another.knows(3) {
		t.Error("one of two knows the third format")
	}
	newer.retract()
	another.retract()
	if run(t, client, "EXISTS", "weir:%formats") != "0" {
		t.Error("the key is there although all have left")
	}
}

// While answers are missing, the first format is written; and again for a minute afterwards.
func TestFormatsWithoutAnswers(t *testing.T) {
	newer := instanceOn(t, connect(t), 1, 2)
	newer.announce()
	newer.later()
	newer.now = newer.now.Add(formatsTTL - 1)
	newer.mustKnow(t, true, "within a minute")
	newer.now = newer.now.Add(1)
	newer.mustKnow(t, false, "after a minute")
	newer.announce()
	newer.mustKnow(t, false, "with the first answer again")
	newer.later()
	newer.mustKnow(t, true, "a minute later")
}

// A Redis that has lost its data says nothing of instances that have not announced themselves again.
func TestFormatsOfAnEmptyRedis(t *testing.T) {
	client := connect(t)
	older, newer := instanceOn(t, client, 1), instanceOn(t, client, 1, 2)
	for range 10 {
		run(t, client, "FLUSHALL")
		newer.announce()
		newer.now = newer.now.Add(announceEvery)
		newer.mustKnow(t, false, "of an empty Redis")
		older.announce()
		newer.announce()
		newer.now = newer.now.Add(announceEvery)
		newer.mustKnow(t, false, "beside an older instance")
	}
}

// An entry has a time to live, and so has the key.
func TestFormatsExpire(t *testing.T) {
	client := connect(t)
	s := instanceOn(t, client, 1)
	run(t, client, "HSET", "weir:%formats", "broken", "entry", "over", "1 1,2", "later", "99999999999999 1,2 and more")
	s.announce()
	if ttl := testkit.Must(client.Do(t.Context(), client.B().Pttl().Key("weir:%formats").Build()).AsInt64())(t); ttl <= 0 || ttl > formatsTTL.Milliseconds() {
		t.Errorf("the key expires in %d ms", ttl)
	}
	if fields := run(t, client, "HKEYS", "weir:%formats"); !strings.Contains(fields, "later") || !strings.Contains(fields, s.formats.id) || run(t, client, "HLEN", "weir:%formats") != "2" {
		t.Errorf("the entries are %v", fields)
	}
}

// A store announces itself without being asked, and no longer when it is closed.
func TestAnnounce(t *testing.T) {
	server := testredis.Start(t)
	s := testkit.Must(Open("redis://" + server.Addr + "?timeout=10s&prefix=shop:"))(t)
	defer s.Close()
	eventually(t, "an announcement", func() bool { return server.Do("HLEN", "shop:%formats") == "1" })
	if entry := server.Do("HVALS", "shop:%formats"); !strings.HasSuffix(strings.TrimSpace(entry), " 1,2,3") {
		t.Errorf("the entry is %q", entry)
	}
	s.Close()
	if server.Do("EXISTS", "shop:%formats") != "0" {
		t.Error("the entry is there although the store is closed")
	}
}

// Without the rights for it, or if something else has the key, the first format is written, and the log says
// so once.
func TestFormatsUnknown(t *testing.T) {
	server := testredis.Start(t)
	server.Do("ACL", "SETUSER", "reader", "on", ">secret", "~*", "+@all", "-hgetall")
	server.Do("SET", "weir:%formats", "something else")
	for url, want := range map[string]string{"reader:secret@": "script:", "": "WRONGTYPE"} {
		var log bytes.Buffer
		config := testkit.Must(ParseURL("redis://" + url + server.Addr + "?timeout=10s"))(t)
		config.Options.Logger = slog.New(slog.NewTextHandler(&log, nil))
		config.Options.Clock = new(fake).Now
		if url != "" {
			config.Options.Prefix = "other:"
		}
		s := testkit.Must(config.Open())(t)
		s.formats.own = []int{1, 2}
		s.announce()
		s.announce()
		(&instance{Store: s}).mustKnow(t, false, url)
		if text := log.String(); strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, want) || strings.Contains(text, "secret") {
			t.Errorf("%q: the log is %s", url, text)
		}
		s.Close()
	}
}
