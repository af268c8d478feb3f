package archive

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc64"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/testredis"
)

// at is a time of these tests, so many seconds after the epoch.
func at(seconds int64) time.Time { return time.Unix(epoch+seconds, 0).UTC() }

// say is a note; without words it ends one.
func say(id, words string, until int64) Note {
	return Note{ID: id, Text: []byte(words), Until: at(until)}
}

// heard is what there is, in few words.
func heard(t testing.TB, a keeper, now int64) string {
	t.Helper()
	all, err := a.Notes(t.Context(), "test", at(now))
	if err != nil {
		t.Fatal(err)
	}
	words := []string{}
	for _, n := range all {
		words = append(words, fmt.Sprintf("%q=%q@%d", n.ID, n.Text, n.Until.Unix()-epoch))
	}
	return strings.Join(words, " ")
}

// both runs a test with each archive.
func both(t *testing.T, f func(t *testing.T, a keeper)) {
	t.Run("memory", func(t *testing.T) { f(t, openMemory(t, Options{})) })
	t.Run("redis", func(t *testing.T) { f(t, openRedis(t, clientOf(t, testredis.Start(t)), Options{})) })
}

func TestNotes(t *testing.T) {
	both(t, func(t *testing.T, a keeper) {
		set := func(now int64, n Note) {
			t.Helper()
			if err := a.SetNote(t.Context(), "test", n, at(now)); err != nil {
				t.Fatal(err)
			}
		}
		offer := func(now int64, n, was Note) {
			t.Helper()
			if err := a.OfferNote(t.Context(), "test", n, was, at(now)); err != nil {
				t.Fatal(err)
			}
		}
		want := func(now int64, want string) {
			t.Helper()
			if got := heard(t, a, now); got != want {
				t.Errorf("at %d: %s, want %s", now, got, want)
			}
		}
		want(0, "")
		set(0, say("a", "one\n\x00\xff", 10))
		set(0, say("\xff", "two", 100))
		if err := a.SetNote(t.Context(), "other", say("a", "of another kind", 20), at(0)); err != nil {
			t.Fatal(err)
		}
		want(9, `"a"="one\n\x00\xff"@10 "\xff"="two"@100`)
		want(10, `"\xff"="two"@100`)

		set(11, say("a", "three", 30))
		set(12, say("a", "", 0)) // it is remembered until its time
		want(29, `"a"=""@30 "\xff"="two"@100`)
		want(30, `"\xff"="two"@100`)
		set(31, say("a", "four", 35))
		want(31, `"a"="four"@35 "\xff"="two"@100`)
		set(32, say("a", "its time has passed", 32))
		want(32, `"a"=""@35 "\xff"="two"@100`)
		set(32, say("nothing", "", 0))
		set(32, say("lost", "", 34))
		want(32, `"a"=""@35 "lost"=""@34 "\xff"="two"@100`)

		offer(36, say("a", "five", 80), Note{}) // there is none any more
		want(36, `"a"="five"@80 "\xff"="two"@100`)
		offer(36, say("a", "not heard", 90), Note{})
		offer(36, say("a", "not heard", 90), say("a", "five", 81))
		offer(36, say("a", "not heard", 90), say("a", "fiv", 80))
		offer(36, say("a", "", 90), say("a", "four", 35))
		want(36, `"a"="five"@80 "\xff"="two"@100`)
		offer(36, say("a", "six", 81), say("a", "five", 80))
		want(36, `"a"="six"@81 "\xff"="two"@100`)
		offer(36, say("a", "", 0), say("a", "six", 81))
		want(36, `"a"=""@81 "\xff"="two"@100`)
		offer(36, say("a", "seven", 90), say("a", "", 81))
		want(36, `"a"="seven"@90 "\xff"="two"@100`)
	})
}

// Both archives do the same, whatever they are told.
func TestNotesAgree(t *testing.T) {
	client := clientOf(t, testredis.Start(t))
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		o := Options{Prefix: fmt.Sprintf("run%d:", run)}
		shared := []keeper{openRedis(t, client, o), openRedis(t, client, o)}
		alone := openMemory(t, Options{})
		now := int64(0)
		note := func(what string) Note {
			id := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, what)
			return say(id, rapid.SampledFrom([]string{"", "x", "y"}).Draw(rt, what), now+rapid.Int64Range(-1, 4).Draw(rt, what))
		}
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			now += rapid.Int64Range(0, 2).Draw(rt, "passed")
			n, was := note("note"), note("was")
			was.ID = n.ID
			offer := rapid.Bool().Draw(rt, "offer")
			for _, a := range []keeper{alone, shared[rapid.IntRange(0, 1).Draw(rt, "instance")]} {
				var err error
				if offer {
					err = a.OfferNote(t.Context(), "test", n, was, at(now))
				} else {
					err = a.SetNote(t.Context(), "test", n, at(now))
				}
				if err != nil {
					rt.Fatal(err)
				}
			}
			want := heard(t, alone, now)
			for _, a := range shared {
				if got := heard(t, a, now); got != want {
					rt.Fatalf("redis has %s, memory %s", got, want)
				}
			}
		}
	})
}

// There are so many and no more; ended ones make room, and are forgotten when they are
// too many themselves, the next to pass first.
func TestNotesAreBounded(t *testing.T) {
	both(t, func(t *testing.T, a keeper) {
		set := func(n Note) error { return a.SetNote(t.Context(), "test", n, at(0)) }
		for i := range MaxNotes {
			if err := set(say(fmt.Sprint(i), "x", int64(1000+i))); err != nil {
				t.Fatal(err)
			}
		}
		if err := set(say("more", "x", 10)); !errors.Is(err, ErrNoRoom) {
			t.Errorf("one more: %v", err)
		}
		if err := a.OfferNote(t.Context(), "test", say("more", "x", 10), Note{}, at(0)); !errors.Is(err, ErrNoRoom) {
			t.Errorf("one more is offered: %v", err)
		}
		if err := errors.Join(set(say("7", "y", 10)), set(say("8", "", 0)), set(say("more", "x", 10))); err != nil {
			t.Error(err)
		}
		if err := set(say("8", "x", 10)); !errors.Is(err, ErrNoRoom) {
			t.Errorf("one that was ended is back: %v", err)
		}
		for i := range 3 * MaxNotes {
			if err := set(say(fmt.Sprint("gone", i), "", int64(5000-i))); err != nil {
				t.Fatal(err)
			}
		}
		all, err := a.Notes(t.Context(), "test", at(0))
		if err != nil || len(all) != 2*MaxNotes {
			t.Fatalf("%d notes, %v", len(all), err)
		}
		text := heard(t, a, 0)
		if !strings.Contains(text, `"gone0"`) || !strings.Contains(text, `"gone98"`) || strings.Contains(text, `"gone99"`) || !strings.Contains(text, `"gone299"`) || strings.Contains(text, `"8"=`) {
			t.Error(text)
		}

		long := strings.Repeat("x", MaxNoteText+1)
		for what, err := range map[string]error{
			"a long text": set(say("7", long, 10)), "a long id": set(say(long[:MaxNoteID+1], "x", 10)),
			"no id": set(say("", "x", 10)), "two years": set(say("7", "x", 2*366*day)),
			"no kind":     a.SetNote(t.Context(), "", say("7", "x", 10), at(0)),
			"a long kind": a.SetNote(t.Context(), long[:100], say("7", "x", 10), at(0)),
		} {
			if err == nil || errors.Is(err, ErrNoRoom) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := set(say("7", long[1:], 366*day)); err != nil {
			t.Error(err)
		}
	})
}

// The notes have an end in Redis, which is that of the last one.
func TestNotesExpire(t *testing.T) {
	server := testredis.Start(t)
	a := openRedis(t, clientOf(t, server), Options{Prefix: "test:"})
	const key = "test:{stats}:notes:test"
	for i, c := range []struct {
		note Note
		ttl  int
	}{
		{say("a", "x", 100), 100}, {say("b", "x", 1000), 1000}, {say("c", "x", 10), 1000},
		{say("b", "", 0), 1000}, {say("b", "x", 200), 200},
	} {
		if err := a.SetNote(t.Context(), "test", c.note, at(0)); err != nil {
			t.Fatal(err)
		}
		if ttl, err := strconv.Atoi(server.Do("PTTL", key)); err != nil || ttl > 1000*c.ttl || ttl < 1000*c.ttl-5000 {
			t.Errorf("%d: it lives for %d ms, want %d s", i, ttl, c.ttl)
		}
	}
	if got := heard(t, a, 150); got != `"b"="x"@200` {
		t.Error(got)
	}
	if n := server.Do("HLEN", key); n != "1" {
		t.Errorf("%s are kept when the time of two has passed", n)
	}
}

// What somebody else has written under the key harms nobody, and is removed.
func TestForeignNotes(t *testing.T) {
	server := testredis.Start(t)
	a := openRedis(t, clientOf(t, server), Options{})
	key := a.prefix + "notes:test"
	good := say("good", "x", 100)
	soon := strconv.FormatInt(at(100).UnixMicro(), 10)
	for id, value := range map[string]string{
		"empty": "", "no time": "x", "no space": soon, "negative": "-" + soon + " x", "float": soon + ".5 x",
		"hex": "0x7fffffffffffff x", "infinite": "1e999 x", "far": "9" + soon + " x", "digits": strings.Repeat("9", 5000) + " x",
		"nan": "nan x", "long": soon + " " + strings.Repeat("x", MaxNoteText+1), strings.Repeat("i", MaxNoteID+1): soon + " x", "": soon + " x",
	} {
		server.Do("HSET", key, id, value)
	}
	server.Do("HSET", key, "good", good.value())
	if got := heard(t, a, 0); got != `"good"="x"@100` {
		t.Error(got)
	}
	if got := server.Do("HKEYS", key); got != "good" {
		t.Errorf("%.100s are kept", got)
	}
	for i := range 5 * MaxNotes {
		server.Do("HSET", key, fmt.Sprint(i), good.value())
	}
	all, err := a.Notes(t.Context(), "test", at(0))
	if err != nil || len(all) > 2*MaxNotes {
		t.Errorf("%d notes, %v", len(all), err)
	}
	for _, words := range []string{"y", ""} {
		if err := a.SetNote(t.Context(), "test", say("good", words, 50), at(0)); err != nil {
			t.Error(err)
		}
	}
	server.Do("SET", key, "no hash")
	if _, err := a.Notes(t.Context(), "test", at(0)); err == nil {
		t.Error("a text is taken for notes")
	}
}

func TestNotesOnCluster(t *testing.T) {
	a := openRedis(t, clusterClient(t, testredis.StartCluster(t).Addrs), Options{})
	if err := a.SetNote(t.Context(), "test", say("a", "x", 10), at(0)); err != nil {
		t.Fatal(err)
	}
	if got := heard(t, a, 0); got != `"a"="x"@10` {
		t.Error(got)
	}
}

// Notes are in the snapshot; one of a weir that had none is read as before.
func TestSnapshotOfNotes(t *testing.T) {
	m := openMemory(t, Options{})
	if err := m.Add(t.Context(), []Part{part(Series, epoch, "1", someFrame(3))}); err != nil {
		t.Fatal(err)
	}
	var before bytes.Buffer
	if err := m.Snapshot(&before); err != nil {
		t.Fatal(err)
	}
	for _, n := range []Note{say("a", "one", 10), say("\xff", "two", 20), say("gone", "", 30)} {
		if err := m.SetNote(t.Context(), "test", n, at(0)); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.SetNote(t.Context(), "other", say("a", "x", 10), at(0)); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := m.Snapshot(&file); err != nil {
		t.Fatal(err)
	}
	whole := file.Bytes()
	next := openMemory(t, Options{})
	if err := next.Restore(bytes.NewReader(whole)); err != nil {
		t.Fatal(err)
	}
	if got, want := heard(t, next, 0), heard(t, m, 0); got != want || !strings.Contains(got, `"\xff"="two"@20`) {
		t.Errorf("%s, want %s", got, want)
	}
	if got := heard(t, next, 10); got != `"gone"=""@30 "\xff"="two"@20` {
		t.Error(got)
	}
	if other, _ := next.Notes(t.Context(), "other", at(0)); len(other) != 1 || total(t, next, Series, 0, epoch, epoch+1) != 3 {
		t.Errorf("%+v", other)
	}
	for i := range whole {
		bad := bytes.Clone(whole)
		bad[i] ^= 0x40
		if err := openMemory(t, Options{}).Restore(bytes.NewReader(bad)); err == nil {
			t.Fatalf("byte %d is wrong, and nobody notices", i)
		}
		if err := openMemory(t, Options{}).Restore(bytes.NewReader(whole[:i])); err == nil {
			t.Fatalf("%d bytes are taken for all", i)
		}
	}

	used := openMemory(t, Options{})
	if err := used.SetNote(t.Context(), "test", say("a", "x", 10), at(0)); err != nil {
		t.Fatal(err)
	}
	if err := used.Restore(bytes.NewReader(whole)); err == nil || heard(t, used, 0) != `"a"="x"@10` {
		t.Errorf("an archive with a note was restored: %v", err)
	}
	old := openMemory(t, Options{})
	if err := old.Restore(bytes.NewReader(asVersion1(before.Bytes()))); err != nil || total(t, old, Series, 0, epoch, epoch+1) != 3 {
		t.Errorf("version 1: %v", err)
	}
}

// asVersion1 is a snapshot without notes as it was written before there were any.
func asVersion1(file []byte) []byte {
	old := bytes.Clone(file[:len(file)-8])
	old[len(snapshotMagic)] = 1
	return binary.LittleEndian.AppendUint64(old, crc64.Checksum(old, crcTable))
}
