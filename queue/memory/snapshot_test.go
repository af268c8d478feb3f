package memory

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc64"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/queue"
)

const today = weir.Micros(1_767_268_807_000_000)

var shop = map[string]queue.Settings{
	"mail": {N: 7, Period: time.Second, MaxTries: 2, Remember: time.Hour},
	"pay":  {N: 1, Period: time.Microsecond, MaxDead: 2},
}

// used is a store with items in every state, and the token of a lease of mail.
func used(t testing.TB) (*Store, *fake, string) {
	t.Helper()
	s, clock := open(t, shop)
	clock.Set(today)
	ctx := t.Context()
	push := func(name, id string) {
		t.Helper()
		if _, err := s.Push(ctx, name, queue.Work{Payload: []byte("of " + id + "\x00"), ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	lease := func(name string) string {
		t.Helper()
		clock.Set(clock.Now() + 1_000_000)
		b, err := s.Lease(ctx, name, queue.Ask{})
		if err != nil || len(b.Leases) != 1 {
			t.Fatal(b, err)
		}
		return b.Leases[0].Token
	}
	for i := range 8 {
		push("mail", fmt.Sprint("m", i))
		push("pay", fmt.Sprint("p", i))
	}
	if err := s.Ack(ctx, "mail", lease("mail")); err != nil {
		t.Fatal(err)
	}
	for _, bury := range []bool{true, false} {
		if _, err := s.Nack(ctx, "mail", lease("mail"), queue.Failure{Reason: "no", Bury: bury}); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		if _, err := s.Nack(ctx, "pay", lease("pay"), queue.Failure{Reason: "no", Bury: true}); err != nil {
			t.Fatal(err)
		}
	}
	clock.Set(clock.Now() - 3_500_000) // so that one is held back
	token := lease("mail")
	push("mail", "late")
	return s, clock, token
}

func snapshotOf(t *testing.T, s *Store) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := s.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The next process goes on as this one would have, to the last item, number and lease.
func TestRestoreGoesOn(t *testing.T) {
	old, clock, token := used(t)
	s, _ := open(t, shop)
	s.now = clock.Now
	if err := s.Restore(bytes.NewReader(snapshotOf(t, old))); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	tokens := map[*Store]string{old: token, s: token}
	play := func(s *Store) (story []string) {
		say := func(args ...any) { story = append(story, fmt.Sprintf("%+v", args)) }
		for range 12 {
			for _, name := range []string{"mail", "pay"} {
				stats, err := s.Stats(ctx, name)
				say(stats, err)
				letters, err := s.DeadLetters(ctx, name, 0, 10)
				say(letters, err)
			}
			b, err := s.Lease(ctx, "mail", queue.Ask{Ahead: time.Second})
			for _, l := range b.Leases {
				l.Token = ""
				say(l)
			}
			say(b.Wait, err)
			place, err := s.Push(ctx, "mail", queue.Work{ID: "m0"})
			say(place, err)
			place, err = s.Push(ctx, "pay", queue.Work{ID: "p7"})
			say(place, err)
			if tokens[s] != "" {
				say(s.Ack(ctx, "mail", tokens[s]))
				tokens[s] = ""
			}
		}
		return story
	}
	for step := range 5 {
		want, got := play(old), play(s)
		for i := range want {
			if want[i] != got[i] {
				t.Fatalf("step %d, line %d:\n%s\nwant\n%s", step, i, got[i], want[i])
			}
		}
		clock.Set(clock.Now() + 700_000)
	}
}

func TestRestoreIsLossless(t *testing.T) {
	old, _, _ := used(t)
	snapshot := snapshotOf(t, old)
	// Queues that are not declared are kept, too.
	for _, queues := range []map[string]queue.Settings{shop, {"mail": shop["mail"]}, nil} {
		s, _ := open(t, queues)
		if err := s.Restore(bytes.NewReader(snapshot)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(snapshotOf(t, s), snapshot) {
			t.Errorf("with %d queues a snapshot changed by being restored", len(queues))
		}
		if _, err := s.Push(t.Context(), "pay", queue.Work{}); (err == nil) != (len(queues) == 2) {
			t.Errorf("with %d queues: Push = %v", len(queues), err)
		}
	}
}

// Who began to watch before the work came back hears of what is pushed after.
func TestRestoreKeepsWatchers(t *testing.T) {
	empty, _ := open(t, shop)
	snapshot := snapshotOf(t, empty)
	synctest.Test(t, func(t *testing.T) {
		s, clock := open(t, shop)
		clock.Set(today)
		ctx, cancel := context.WithCancel(t.Context())
		heard, ended := 0, make(chan error)
		go func() { ended <- s.Watch(ctx, "pay", func() { heard++ }) }()
		synctest.Wait()
		if err := s.Restore(bytes.NewReader(snapshot)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Push(ctx, "pay", queue.Work{}); err != nil || heard != 1 {
			t.Errorf("heard %d times, %v", heard, err)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Watch = %v", err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if n := len(s.lines["pay"].watchers); n != 0 {
			t.Errorf("%d watchers are left", n)
		}
	})
}

// After Close nothing is accepted that the last snapshot does not have.
func TestClose(t *testing.T) {
	s, clock, token := used(t)
	s.Close()
	before := snapshotOf(t, s)
	clock.Set(clock.Now() + 3_600_000_000)
	if _, err := s.Push(t.Context(), "mail", queue.Work{}); !errors.Is(err, queue.ErrClosed) {
		t.Errorf("Push = %v", err)
	}
	if err := s.Ack(t.Context(), "mail", token); !errors.Is(err, queue.ErrClosed) {
		t.Errorf("Ack = %v", err)
	}
	if !bytes.Equal(snapshotOf(t, s), before) {
		t.Error("a closed store has changed")
	}
}

func TestRestoreNeedsAnEmptyStore(t *testing.T) {
	s, _, _ := used(t)
	before := snapshotOf(t, s)
	if err := s.Restore(bytes.NewReader(before)); err == nil || !strings.Contains(err.Error(), "has been used already") {
		t.Errorf("Restore = %v", err)
	}
	if !bytes.Equal(snapshotOf(t, s), before) {
		t.Error("the store has changed")
	}
}

// Cut anywhere, and with any byte changed, a snapshot is rejected in words, and the store is
// empty and works.
func TestDamagedSnapshotIsRejected(t *testing.T) {
	old, clock, _ := used(t)
	whole := snapshotOf(t, old)
	rejected := func(name string, snapshot []byte) {
		t.Helper()
		s, _ := open(t, shop)
		s.now = clock.Now
		err := s.Restore(bytes.NewReader(snapshot))
		if err == nil || !strings.HasPrefix(err.Error(), "memory: the snapshot cannot be used: it ") {
			t.Fatalf("%s: %v", name, err)
		}
		if p, err := s.Push(t.Context(), "mail", queue.Work{ID: "m1"}); err != nil || p.Position != 1 {
			t.Fatalf("%s: the store is not empty or does not work: %+v, %v", name, p, err)
		}
	}
	for n := range whole {
		rejected(fmt.Sprintf("cut to %d bytes", n), whole[:n])
		changed := bytes.Clone(whole)
		changed[n] ^= 0x40
		rejected(fmt.Sprintf("byte %d changed", n), changed)
	}
	rejected("too long", append(bytes.Clone(whole), 0))
	other := bytes.Clone(whole)
	other[len(format.Magic)] = 9
	s, _ := open(t, shop)
	if err := s.Restore(bytes.NewReader(other)); err == nil || !strings.Contains(err.Error(), "it is of version 9, this weir reads version 1") {
		t.Errorf("another version: %v", err)
	}
}

type failing struct{ after int }

func (f *failing) Write(p []byte) (int, error) {
	if f.after -= len(p); f.after < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

func TestSnapshotReportsTheWriter(t *testing.T) {
	s, _, _ := used(t)
	for _, after := range []int{0, len(snapshotOf(t, s)) - 1} {
		if err := s.Snapshot(&failing{after}); err == nil || err.Error() != "memory: writing the snapshot: disk full" {
			t.Errorf("after %d bytes: %v", after, err)
		}
	}
}

// No file crashes the store, not even one with the right checksum.
func FuzzRestore(f *testing.F) {
	old, _, _ := used(f)
	var b bytes.Buffer
	if err := old.Snapshot(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, snapshot []byte) { restoreForged(t, snapshot) })
}

// The same with words changed at random, for every run of the tests.
func TestForgedSnapshots(t *testing.T) {
	old, _, _ := used(t)
	whole := snapshotOf(t, old)
	accepted := 0
	rapid.Check(t, func(r *rapid.T) {
		forged := bytes.Clone(whole)
		for range rapid.IntRange(1, 3).Draw(r, "changes") {
			at := rapid.IntRange(0, len(forged)-16).Draw(r, "at")
			word := rapid.OneOf(rapid.Uint64Range(0, 40), rapid.Uint64Range(1<<53-2, 1<<53), rapid.Uint64()).Draw(r, "word")
			binary.LittleEndian.PutUint64(forged[at:], word)
		}
		if restoreForged(t, forged) {
			accepted++
		}
	})
	for at := 16; accepted == 0; at++ { // chance need not have found one
		if at == len(whole)-16 {
			t.Fatal("no forged snapshot was ever accepted; the test does not test much")
		}
		forged := bytes.Clone(whole)
		if forged[at] ^= 1; restoreForged(t, forged) {
			accepted++
		}
	}
}

// restoreForged makes the checksum right and uses what comes of it.
func restoreForged(t *testing.T, snapshot []byte) bool {
	snapshot = bytes.Clone(snapshot)
	if n := len(snapshot); n >= 8 {
		binary.LittleEndian.PutUint64(snapshot[n-8:], crc64.Checksum(snapshot[:n-8], crc64.MakeTable(crc64.ECMA)))
	}
	s, clock := open(t, shop)
	clock.Set(today)
	good := s.Restore(bytes.NewReader(snapshot)) == nil
	if !good && s.lines["mail"].last != 0 {
		t.Fatal("a rejected snapshot left something behind")
	}
	ctx := t.Context()
	for range 20 {
		for name := range shop {
			_, pushErr := s.Push(ctx, name, queue.Work{ID: "x"})
			b, leaseErr := s.Lease(ctx, name, queue.Ask{Max: 3})
			if pushErr != nil || leaseErr != nil {
				t.Fatal(pushErr, leaseErr)
			}
			for _, l := range b.Leases {
				if err := s.Ack(ctx, name, l.Token); err != nil {
					t.Fatal(err)
				}
			}
			if st, err := s.Stats(ctx, name); err != nil || st.Wait < 0 {
				t.Fatal(st, err)
			}
		}
		clock.Set(clock.Now() + 1_000_000)
	}
	return good
}

// A snapshot that an earlier weir has written is read: the format is as it was. If it has to
// change, so has its version.
func TestEarlierSnapshot(t *testing.T) {
	earlier, err := os.ReadFile("testdata/earlier.snapshot")
	if err != nil {
		t.Fatal(err)
	}
	s, _ := open(t, shop)
	if err := s.Restore(bytes.NewReader(earlier)); err != nil {
		t.Fatal(err)
	}
	if again := snapshotOf(t, s); !bytes.Equal(again, earlier) {
		t.Errorf("%x was written, %x read", again, earlier)
	}
}
