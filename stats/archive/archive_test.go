package archive_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/archiveredis"
	"github.com/weirhq/weir/internal/redislink"
	"github.com/weirhq/weir/internal/testkit/archivetest"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/stats/archive"
)

func TestMain(m *testing.M) { testredis.VerifyMain(m) }

var (
	_ archive.Store = (*archive.Memory)(nil)
	_ archive.Store = (*archiveredis.Store)(nil)
)

func clientOf(t testing.TB, server *testredis.Server) rueidis.Client {
	t.Helper()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func openRedis(t testing.TB, client rueidis.Client, o archiveredis.Options) *archiveredis.Store {
	t.Helper()
	a, err := archiveredis.Open(redislink.Given(client), o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func openMemory(t testing.TB, keep archive.Keep) *archive.Memory {
	t.Helper()
	m, err := archive.NewMemory(keep)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Whatever is added, late or twice, and whichever instance rolls up in between: every
// level always has the same, correct sum.
func TestLevelsAgree(t *testing.T) {
	server := testredis.Start(t)
	client := clientOf(t, server)
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		o := archiveredis.Options{Prefix: fmt.Sprintf("run%d:", run)}
		shared := []archive.Store{openRedis(t, client, o), openRedis(t, client, o)}
		alone := openMemory(t, archive.Keep{})
		now, want, sent := int64(archivetest.Epoch), int64(0), []archive.Part{}
		for step := range rapid.IntRange(1, 25).Draw(rt, "steps") {
			now += rapid.SampledFrom([]int64{0, 1, 1, 1, 30, 60, 600}).Draw(rt, "passed")
			a := shared[rapid.IntRange(0, 1).Draw(rt, "instance")]
			switch rapid.IntRange(0, 5).Draw(rt, "what") {
			case 0:
				if err := a.RollUp(t.Context(), time.Unix(now, 0)); err != nil {
					rt.Fatal(err)
				}
			case 1:
				if len(sent) == 0 {
					continue
				}
				again := rapid.SampledFrom(sent).Draw(rt, "again")
				if err := a.Add(t.Context(), []archive.Part{again}); err != nil {
					rt.Fatal(err)
				}
			default:
				n := rapid.Int64Range(1, 1000).Draw(rt, "n")
				late := rapid.SampledFrom([]int64{0, 0, 1, 5, 100}).Draw(rt, "late")
				p := archivetest.Part(archive.Series, now-late, fmt.Sprint("part", step), archivetest.SomeFrame(n))
				for _, k := range []archive.Store{a, alone} {
					if err := k.Add(t.Context(), []archive.Part{p}); err != nil {
						rt.Fatal(err)
					}
				}
				sent, want = append(sent, p), want+n
			}
			if step%5 > 0 {
				continue
			}
			for who, k := range map[string]archive.Store{"memory": alone, "redis": shared[0], "redis again": shared[1]} {
				// What is left of the seconds after an hour is no part of the promise.
				for level := range k.Levels(archive.Series) {
					if level == 0 && now > archivetest.Epoch+3600-200 {
						continue
					}
					if got := archivetest.Total(t, k, archive.Series, level, archivetest.Epoch-200, now+1); got != want {
						rt.Fatalf("after step %d, level %d of %s has %d, want %d", step, level, who, got, want)
					}
				}
			}
		}
	})
}

// Both archives do the same, whatever they are told.
func TestNotesAgree(t *testing.T) {
	client := clientOf(t, testredis.Start(t))
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		o := archiveredis.Options{Prefix: fmt.Sprintf("run%d:", run)}
		shared := []archive.Store{openRedis(t, client, o), openRedis(t, client, o)}
		alone := openMemory(t, archive.Keep{})
		now := int64(0)
		note := func(what string) archive.Note {
			id := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, what)
			return archivetest.Say(id, rapid.SampledFrom([]string{"", "x", "y"}).Draw(rt, what), now+rapid.Int64Range(-1, 4).Draw(rt, what))
		}
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			now += rapid.Int64Range(0, 2).Draw(rt, "passed")
			n, was := note("note"), note("was")
			was.ID = n.ID
			offer := rapid.Bool().Draw(rt, "offer")
			for _, a := range []archive.Store{alone, shared[rapid.IntRange(0, 1).Draw(rt, "instance")]} {
				var err error
				if offer {
					err = a.OfferNote(t.Context(), "test", n, was, archivetest.At(now))
				} else {
					err = a.SetNote(t.Context(), "test", n, archivetest.At(now))
				}
				if err != nil {
					rt.Fatal(err)
				}
			}
			want := archivetest.Heard(t, alone, now)
			for _, a := range shared {
				if got := archivetest.Heard(t, a, now); got != want {
					rt.Fatalf("redis has %s, memory %s", got, want)
				}
			}
		}
	})
}

func TestParseKeep(t *testing.T) {
	for text, want := range map[string]archive.Keep{
		"":           {},
		"seconds=2h": {Second: 2 * time.Hour},
		"days=400d, hours=60d,minutes=2d,seconds=90m": {
			Second: 90 * time.Minute, Minute: 48 * time.Hour, Hour: 60 * 24 * time.Hour, Day: 400 * 24 * time.Hour,
		},
	} {
		if got, err := archive.ParseKeep(text); err != nil || got != want {
			t.Errorf("%q: %+v %v, want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"1h":                    "cannot be read",
		"seconds=1h;minutes=1d": "cannot be read",
		"weeks=3":               "use seconds, minutes, hours, days",
		"seconds=1h,seconds=2h": "twice",
		"seconds=long":          "is not a duration",
		"seconds=-1h":           "is not a duration",
		"seconds=1s":            "econd",
	} {
		if _, err := archive.ParseKeep(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

func TestKeepIsChecked(t *testing.T) {
	for _, k := range []archive.Keep{{Second: time.Second}, {Minute: time.Hour}, {Hour: -1}, {Day: 1e6 * time.Hour}} {
		if _, err := k.Levels(); err == nil {
			t.Errorf("%+v is accepted", k)
		}
	}
}
