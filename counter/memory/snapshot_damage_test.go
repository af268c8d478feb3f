package memory

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc64"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/counter"
)

// Cut anywhere, and with any byte changed, a snapshot is rejected in words, and the store is
// empty and works.
func TestDamagedSnapshotIsRejected(t *testing.T) {
	old, clock := used(t)
	useMore(t, old)
	whole := snapshotOf(t, old)
	rejected := func(name string, snapshot []byte) {
		t.Helper()
		s := New(Options{Clock: clock.Now})
		err := s.Restore(bytes.NewReader(snapshot))
		if err == nil || !strings.HasPrefix(err.Error(), "counter: the snapshot cannot be used: it ") {
			t.Fatalf("%s: %v", name, err)
		}
		if s.Len() != 0 {
			t.Fatalf("%s: something is left behind", name)
		}
		add(t, s, counter.Key{Name: "k"})
	}
	for n := range whole {
		rejected(fmt.Sprintf("cut to %d bytes", n), whole[:n])
		changed := bytes.Clone(whole)
		changed[n] ^= 0x40
		rejected(fmt.Sprintf("byte %d changed", n), changed)
	}
	rejected("too long", append(bytes.Clone(whole), 0))
	rejected("a queue's", append([]byte("weirqueu"), whole[8:]...))
	other := bytes.Clone(whole)
	other[len(format.Magic)] = 9
	if err := New(Options{}).Restore(bytes.NewReader(other)); err == nil || !strings.Contains(err.Error(), "it is of version 9, this weir reads versions 2 to 3") {
		t.Errorf("another version: %v", err)
	}
}

// No file crashes the store, not even one with the right checksum.
func FuzzRestore(f *testing.F) {
	old, clock := used(f)
	f.Add(snapshotOf(f, old))
	f.Fuzz(func(t *testing.T, snapshot []byte) { restoreForged(t, clock, snapshot) })
}

// The same with words changed at random, for every run of the tests.
func TestForgedSnapshots(t *testing.T) {
	old, clock := used(t)
	whole := snapshotOf(t, old)
	accepted := 0
	rapid.Check(t, func(r *rapid.T) {
		forged := bytes.Clone(whole)
		for range rapid.IntRange(1, 3).Draw(r, "changes") {
			at := rapid.IntRange(16, len(forged)-16).Draw(r, "at")
			word := rapid.OneOf(rapid.Uint64Range(0, 40), rapid.Uint64Range(1<<53-2, 1<<53), rapid.Uint64()).Draw(r, "word")
			binary.LittleEndian.PutUint64(forged[at:], word)
		}
		if restoreForged(t, clock, forged) {
			accepted++
		}
	})
	for at := 16; accepted == 0; at++ { // chance need not have found one
		if at == len(whole)-16 {
			t.Fatal("no forged snapshot was ever accepted; the test does not test much")
		}
		forged := bytes.Clone(whole)
		if forged[at] ^= 1; restoreForged(t, clock, forged) {
			accepted++
		}
	}
}

// restoreForged makes the checksum right and uses what comes of it.
func restoreForged(t *testing.T, clock *fake, snapshot []byte) bool {
	t.Helper()
	snapshot = bytes.Clone(snapshot)
	if n := len(snapshot); n >= 8 {
		binary.LittleEndian.PutUint64(snapshot[n-8:], crc64.Checksum(snapshot[:n-8], crc64.MakeTable(crc64.ECMA)))
	}
	start := clock.Now()
	defer clock.Set(start)
	s := New(Options{Clock: clock.Now, MaxMembers: 3, MaxEntries: 1000})
	good := s.Restore(bytes.NewReader(snapshot)) == nil
	if !good && s.Len() != 0 {
		t.Fatal("a rejected snapshot left something behind")
	}
	checkRoom(t, s)
	ctx := t.Context()
	list := counter.HotList{Name: "l", Window: time.Minute, Threshold: 2}
	for range 20 {
		for _, k := range []counter.Key{{Name: "k"}, {Name: "k", Group: "g", Window: counter.Second}} {
			s.Add(ctx, counter.Delta{Key: k, By: counter.One}) // may be out of range
			if _, err := s.History(ctx, 1, k); err != nil {
				t.Fatal(err)
			}
		}
		for _, b := range []counter.Board{{Name: "b"}, {Name: "b", Window: counter.Hour}, {Name: "b", Sliding: time.Minute}} {
			s.Score(ctx, b, counter.Mark{Member: "c", By: counter.One})
			if _, err := s.Top(ctx, b, 5); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Hit(ctx, list, "x", "y"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Events(ctx, list, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := s.NextID(ctx, "s"); err != nil {
			t.Fatal(err)
		}
		clock.Set(clock.Now() + micros(7*time.Second))
	}
	checkRoom(t, s)
	snapshotOf(t, s)
	return good
}
