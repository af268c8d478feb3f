package archiveredis

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/redislink"
	"github.com/weirhq/weir/internal/testkit/archivetest"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/stats/archive"
)

func TestMain(m *testing.M) { testredis.VerifyMain(m) }

func TestSuite(t *testing.T) {
	client := clientOf(t, testredis.Start(t))
	run := 0
	archivetest.Run(t, func(t *testing.T) (a, b archive.Store) {
		run++
		o := Options{Prefix: fmt.Sprintf("run%d:", run)}
		return openRedis(t, client, o), openRedis(t, client, o)
	})
}

func TestOpenNeedsAClient(t *testing.T) {
	if _, err := Open(redislink.Given(nil), Options{}); err == nil {
		t.Error("no client is accepted")
	}
}

func clientOf(t testing.TB, server *testredis.Server) rueidis.Client {
	t.Helper()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func openRedis(t testing.TB, client rueidis.Client, o Options) *Store {
	t.Helper()
	o.Timeout = 30 * time.Second // a busy machine is slow
	a, err := Open(redislink.Given(client), o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func clusterClient(t testing.TB, addrs []string) rueidis.Client {
	t.Helper()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: addrs, DisableCache: true, ShuffleInit: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func sums(t testing.TB, a archive.Store, from, to int64) string {
	t.Helper()
	var all []int64
	for level := range a.Levels(archive.Series) {
		all = append(all, archivetest.Total(t, a, archive.Series, level, from, to))
	}
	return fmt.Sprint(all)
}

// What is rolled up is kept when the seconds are gone, and then a late part changes
// nothing.
func TestSecondsExpire(t *testing.T) {
	server := testredis.Start(t)
	a := openRedis(t, clientOf(t, server), Options{})
	for i := range int64(90) {
		if err := a.Add(t.Context(), []archive.Part{archivetest.Part(archive.Series, archivetest.Epoch+i, fmt.Sprint(i), archivetest.SomeFrame(10))}); err != nil {
			t.Fatal(err)
		}
	}
	// The last minute goes on, and yet it is written down.
	if err := a.RollUp(t.Context(), time.Unix(archivetest.Epoch+90, 0)); err != nil {
		t.Fatal(err)
	}
	for i := range int64(90) {
		server.Do("DEL", a.slotKey(archive.Series, 1, archivetest.Epoch+i))
	}
	later := archivetest.Epoch + 3600 + slack + 200
	if err := a.Add(t.Context(), []archive.Part{archivetest.Part(archive.Series, archivetest.Epoch, "late", archivetest.SomeFrame(10))}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := a.RollUp(t.Context(), time.Unix(int64(later), 0)); err != nil {
			t.Fatal(err)
		}
	}
	for level := 1; level < 4; level++ {
		if got := archivetest.Total(t, a, archive.Series, level, archivetest.Epoch-24*3600, archivetest.Epoch+24*3600); got != 900 {
			t.Errorf("level %d has %d, want 900", level, got)
		}
	}
	if marks := server.Do("HGETALL", a.marksKey(archive.Series, 60)); marks != "" {
		t.Errorf("marks are left: %q", marks)
	}
}

// A sum is not written when something has changed since it was added up, nor when
// another has written it meanwhile.
func TestStaleSums(t *testing.T) {
	server := testredis.Start(t)
	a := openRedis(t, clientOf(t, server), Options{})
	client, err := a.conn.Client()
	if err != nil {
		t.Fatal(err)
	}
	add := func(id string) (mark string) {
		if err := a.Add(t.Context(), []archive.Part{archivetest.Part(archive.Series, archivetest.Epoch, id, archivetest.SomeFrame(10))}); err != nil {
			t.Fatal(err)
		}
		marks, err := a.marks(t.Context(), client, archive.Series, 1)
		if err != nil {
			t.Fatal(err)
		}
		return marks[a.Levels(archive.Series)[1].Start(archivetest.Epoch)]
	}
	start := a.Levels(archive.Series)[1].Start(archivetest.Epoch)
	write := func(mark, sum string) bool {
		keys := []string{a.slotKey(archive.Series, 60, start), a.marksKey(archive.Series, 60)}
		n, err := rollScript.Exec(t.Context(), client, keys, []string{mark, seconds(start), sum, "1000"}).AsInt64()
		if err != nil {
			t.Fatal(err)
		}
		return n == 1
	}
	old := add("1")
	mark := add("2")
	right := string(archivetest.SomeFrame(20).Append(nil))
	switch {
	case write(old, string(archivetest.SomeFrame(10).Append(nil))):
		t.Error("a sum without the second part is written")
	case !write("", right) || !write(mark, right):
		t.Error("the right sum is not written")
	case write(mark, "stale"), write("", "stale"):
		t.Error("a slot that is done is written again")
	}
	if got := archivetest.Total(t, a, archive.Series, 1, archivetest.Epoch-60, archivetest.Epoch+60); got != 20 {
		t.Errorf("the minute has %d", got)
	}
}

// Everything in Redis has an end, and is on one slot of a cluster.
func TestKeys(t *testing.T) {
	server := testredis.Start(t)
	a := openRedis(t, clientOf(t, server), Options{Prefix: "test:"})
	for kind := range archive.Kinds {
		if err := a.Add(t.Context(), []archive.Part{archivetest.Part(kind, archivetest.Epoch, "1", archivetest.SomeFrame(3))}); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.RollUp(t.Context(), time.Unix(archivetest.Epoch+2*24*3600, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Lead(t.Context(), "test", time.Hour); err != nil {
		t.Fatal(err)
	}
	keys := strings.Fields(server.Do("KEYS", "*"))
	if len(keys) < 12 {
		t.Errorf("only %d keys: %v", len(keys), keys)
	}
	for _, key := range keys {
		if !strings.HasPrefix(key, "test:{stats}:") || server.Do("TTL", key) == "-1" {
			t.Errorf("%s lives for %s s", key, server.Do("TTL", key))
		}
	}
}

func TestCluster(t *testing.T) {
	c := testredis.StartSteadyCluster(t)
	client := clusterClient(t, c.Addrs)
	a := openRedis(t, client, Options{})
	parts := []archive.Part{archivetest.Part(archive.Series, archivetest.Epoch, "1", archivetest.SomeFrame(8)), archivetest.Part(archive.Rules, archivetest.Epoch, "2", archivetest.SomeFrame(4)), archivetest.Part(archive.Series, archivetest.Epoch+61, "3", archivetest.SomeFrame(2))}
	if err := a.Add(t.Context(), parts); err != nil {
		t.Fatal(err)
	}
	if err := a.RollUp(t.Context(), time.Unix(archivetest.Epoch+7200, 0)); err != nil {
		t.Fatal(err)
	}
	if got := sums(t, a, archivetest.Epoch-60, archivetest.Epoch+120); got != "[10 10 10 10]" {
		t.Errorf("the levels have %s", got)
	}
}

// One leads, until it is gone.
func TestLead(t *testing.T) {
	server := testredis.Start(t)
	client := clientOf(t, server)
	a, b := openRedis(t, client, Options{}), openRedis(t, client, Options{})
	leads := func(k archive.Store) bool {
		yes, err := k.Lead(t.Context(), "alerts", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return yes
	}
	if !leads(a) || leads(b) || !leads(a) {
		t.Error("not exactly the first leads")
	}
	server.Do("DEL", a.prefix+"lead:alerts") // as it does by itself after a minute
	if !leads(b) || leads(a) {
		t.Error("no other instance took over")
	}
}

// The key of the notes in Redis expires with the last note.
func TestNotesExpire(t *testing.T) {
	server := testredis.Start(t)
	a := openRedis(t, clientOf(t, server), Options{Prefix: "test:"})
	const key = "test:{stats}:notes:test"
	begun := time.Now()
	for i, c := range []struct {
		note archive.Note
		ttl  int
	}{
		{archivetest.Say("a", "x", 100), 100}, {archivetest.Say("b", "x", 1000), 1000}, {archivetest.Say("c", "x", 10), 1000},
		{archivetest.Say("b", "", 0), 1000}, {archivetest.Say("b", "x", 200), 200},
	} {
		if err := a.SetNote(t.Context(), "test", c.note, archivetest.At(0)); err != nil {
			t.Fatal(err)
		}
		if ttl, err := strconv.Atoi(server.Do("PTTL", key)); err != nil || ttl > 1000*c.ttl || ttl < 1000*c.ttl-1-int(time.Since(begun).Milliseconds()) {
			t.Errorf("%d: it lives for %d ms, want %d s", i, ttl, c.ttl)
		}
	}
	if got := archivetest.Heard(t, a, 150); got != `"b"="x"@200` {
		t.Error(got)
	}
	if n := server.Do("HLEN", key); n != "1" {
		t.Errorf("%s are kept when the time of two has passed", n)
	}
}

// To change a note does not read the others: together they may have 800 KiB.
func TestNotesAreNotRead(t *testing.T) {
	server := testredis.Start(t)
	a := openRedis(t, clientOf(t, server), Options{})
	reads := func(what string, want bool, err error, offer archive.Note) {
		t.Helper()
		server.Do("CONFIG", "RESETSTAT")
		if got := a.OfferNote(t.Context(), "test", offer, archivetest.Say(offer.ID, "x", 1000), archivetest.At(0)); got != err {
			t.Errorf("%s: %v", what, got)
		}
		if got := strings.Contains(server.Do("INFO", "commandstats"), "cmdstat_hgetall:"); got != want {
			t.Errorf("%s: the others are read: %v", what, got)
		}
	}
	for n := range archive.MaxNotes {
		reads("a new one", true, nil, archivetest.Say(fmt.Sprint(n), "x", 1000))
	}
	reads("there is no room", true, archive.ErrNoRoom, archivetest.Say("new", "x", 1000))
	reads("it takes the place of another", false, nil, archivetest.Say("5", "y", 1010))
	reads("another is there", false, nil, archivetest.Say("5", "z", 1010))
	reads("it ends earlier", true, nil, archivetest.Say("6", "y", 10))
	reads("one is ended", true, nil, archivetest.Say("7", "", 0))
	if got := archivetest.Heard(t, a, 0); strings.Count(got, "@") != archive.MaxNotes || !strings.Contains(got, `"5"="y"@1010`) || !strings.Contains(got, `"6"="y"@10`) {
		t.Error(got)
	}
}

// Foreign data under the key does no harm, and is removed.
func TestForeignNotes(t *testing.T) {
	server := testredis.Start(t)
	a := openRedis(t, clientOf(t, server), Options{})
	key := a.prefix + "notes:test"
	good := archivetest.Say("good", "x", 100)
	soon := strconv.FormatInt(archivetest.At(100).UnixMicro(), 10)
	for id, value := range map[string]string{
		"empty": "", "no time": "x", "no space": soon, "negative": "-" + soon + " x", "float": soon + ".5 x",
		"hex": "0x7fffffffffffff x", "infinite": "1e999 x", "far": "9" + soon + " x", "digits": strings.Repeat("9", 5000) + " x",
		"nan": "nan x", "long": soon + " " + strings.Repeat("x", archive.MaxNoteText+1), strings.Repeat("i", archive.MaxNoteID+1): soon + " x", "": soon + " x",
	} {
		server.Do("HSET", key, id, value)
	}
	server.Do("HSET", key, "good", valueOf(&good))
	if got := archivetest.Heard(t, a, 0); got != `"good"="x"@100` {
		t.Error(got)
	}
	if got := server.Do("HKEYS", key); got != "good" {
		t.Errorf("%.100s are kept", got)
	}
	for i := range 5 * archive.MaxNotes {
		server.Do("HSET", key, fmt.Sprint(i), valueOf(&good))
	}
	all, err := a.Notes(t.Context(), "test", archivetest.At(0))
	if err != nil || len(all) > 2*archive.MaxNotes {
		t.Errorf("%d notes, %v", len(all), err)
	}
	for _, words := range []string{"y", ""} {
		if err := a.SetNote(t.Context(), "test", archivetest.Say("good", words, 50), archivetest.At(0)); err != nil {
			t.Error(err)
		}
	}
	server.Do("SET", key, "no hash")
	if _, err := a.Notes(t.Context(), "test", archivetest.At(0)); err == nil {
		t.Error("a text is taken for notes")
	}
}

func TestNotesOnCluster(t *testing.T) {
	a := openRedis(t, clusterClient(t, testredis.StartSteadyCluster(t).Addrs), Options{})
	if err := a.SetNote(t.Context(), "test", archivetest.Say("a", "x", 10), archivetest.At(0)); err != nil {
		t.Fatal(err)
	}
	if got := archivetest.Heard(t, a, 0); got != `"a"="x"@10` {
		t.Error(got)
	}
}
