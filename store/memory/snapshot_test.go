package memory

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/disk"
)

var every = []*weir.Compiled{
	weir.MustCompile("fixed_window 5/1d"), weir.MustCompile("sliding_window 5/1d"), weir.MustCompile("sliding_buckets 5/1d"),
	weir.MustCompile("sliding_log 5/1d"), weir.MustCompile("token_bucket 5/1d"), weir.MustCompile("leaky_bucket 5/1d shape"),
}

// used returns a store with 200 keys of every algorithm, each with 1 to 5
// units taken, and a snapshot of it.
func used(t *testing.T) (*Store, *fake, []byte) {
	t.Helper()
	s, clock := open(0)
	for i := range 200 {
		for _, limit := range every {
			for range 1 + i%5 {
				take(t, s, fmt.Sprint("key ", i), limit)
				clock.Pass(1)
			}
		}
	}
	var b bytes.Buffer
	if err := s.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	return s, clock, b.Bytes()
}

func restored(t *testing.T, clock *fake, snapshot []byte) *Store {
	t.Helper()
	s := New(Options{Clock: clock.Now})
	if err := s.Restore(bytes.NewReader(snapshot)); err != nil {
		t.Fatal(err)
	}
	return s
}

// A new process answers as the old one would have.
func TestRestoreAnswersTheSame(t *testing.T) {
	old, clock, snapshot := used(t)
	s := restored(t, clock, snapshot)
	if got, want := s.Stats().Keys, old.Stats().Keys; got != want {
		t.Fatalf("%d keys, want %d", got, want)
	}
	checkKeys(t, s, DefaultMaxKeys)
	for range 3 {
		for i := range 210 {
			for _, limit := range every {
				key := fmt.Sprint("key ", i)
				if got, want := take(t, s, key, limit), take(t, old, key, limit); got != want {
					t.Fatalf("%s of %v: %+v, want %+v", key, limit.Limit(), got, want)
				}
			}
		}
		clock.Pass(5 * 3600 * second)
	}
}

// A snapshot of a restored store is the same snapshot, up to its order.
func TestRestoreIsLossless(t *testing.T) {
	_, clock, snapshot := used(t)
	var again bytes.Buffer
	if err := restored(t, clock, snapshot).Snapshot(&again); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(snapshot, again.Bytes()) {
		t.Error("a snapshot changed by being restored")
	}
}

// What has recovered meanwhile stays away; who is limited stays limited.
func TestRestoreAfterALongTime(t *testing.T) {
	_, clock, snapshot := used(t)
	clock.Pass(2 * 86_400 * second)
	if got := restored(t, clock, snapshot).Stats().Keys; got != 0 {
		t.Errorf("%d keys after two days, want none", got)
	}
}

// A smaller store takes what fits, and prefers whom it is denying.
func TestRestoreIntoASmallerStore(t *testing.T) {
	big, clock := open(0)
	limit := weir.MustCompile("fixed_window 2/1d")
	for i := range 3000 {
		take(t, big, fmt.Sprint(i), limit)
	}
	exhaust(t, big, "victim", limit)
	var b bytes.Buffer
	if err := big.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	small := New(Options{MaxKeys: 1000, Clock: clock.Now})
	if err := small.Restore(&b); err != nil {
		t.Fatal(err)
	}
	checkKeys(t, small, 1000)
	if take(t, small, "victim", limit).Allowed {
		t.Error("the victim was freed")
	}
}

// Cut anywhere, and with any byte changed, a snapshot is denied in words, and
// the store is empty and works.
func TestDamagedSnapshotIsDenied(t *testing.T) {
	s, clock := open(0)
	take(t, s, "a", every[3])
	take(t, s, "b", every[4])
	var b bytes.Buffer
	if err := s.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	whole := b.Bytes()
	denied := func(name string, snapshot []byte) {
		t.Helper()
		s := New(Options{Clock: clock.Now})
		err := s.Restore(bytes.NewReader(snapshot))
		if err == nil || !strings.HasPrefix(err.Error(), "memory: the snapshot cannot be used: it ") {
			t.Errorf("%s: %v", name, err)
		}
		if st := s.Stats(); st != (Stats{}) {
			t.Errorf("%s: the store is not empty: %+v", name, st)
		}
		if d := take(t, s, "a", every[3]); d.Remaining != 4 {
			t.Errorf("%s: the store does not work: %+v", name, d)
		}
	}
	for n := range whole {
		denied(fmt.Sprintf("cut to %d bytes", n), whole[:n])
		changed := bytes.Clone(whole)
		changed[n] ^= 0x40
		denied(fmt.Sprintf("byte %d changed", n), changed)
	}
	denied("too long", append(bytes.Clone(whole), 0))
	denied("foreign", []byte("PK\x03\x04 this is a zip file, or says so"))
	if err := New(Options{Clock: clock.Now}).Restore(bytes.NewReader(whole)); err != nil {
		t.Errorf("the undamaged snapshot: %v", err)
	}
}

func TestRestoreOfAnotherVersion(t *testing.T) {
	_, _, snapshot := used(t)
	snapshot[len(format.Magic)] = 9
	s, _ := open(0)
	err := s.Restore(bytes.NewReader(snapshot))
	if want := "memory: the snapshot cannot be used: it is of version 9, this weir reads versions 2 to 4"; err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

func TestRestoreNeedsAnEmptyStore(t *testing.T) {
	s, _, snapshot := used(t)
	before := s.Stats()
	if err := s.Restore(bytes.NewReader(snapshot)); err == nil || !strings.Contains(err.Error(), "1200 keys already") {
		t.Errorf("Restore into a used store: %v", err)
	}
	if s.Stats() != before {
		t.Error("the store has changed")
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
	s, _, snapshot := used(t)
	for _, after := range []int{0, 1 << 16, len(snapshot) - 1} {
		if err := s.Snapshot(&failing{after}); err == nil || err.Error() != "memory: writing the snapshot: disk full" {
			t.Errorf("after %d bytes: %v", after, err)
		}
	}
}

var crcTable = crc64.MakeTable(crc64.ECMA)

// No file crashes the store, not even one with the right checksum.
func FuzzRestore(f *testing.F) {
	s, clock := open(0)
	for i, limit := range every {
		if _, err := s.Take(f.Context(), nil, weir.Op{Key: "k", Limit: limit, Cost: int64(1 + i%5)}); err != nil {
			f.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := s.Snapshot(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, snapshot []byte) {
		if n := len(snapshot); n >= 8 {
			binary.LittleEndian.PutUint64(snapshot[n-8:], crc64.Checksum(snapshot[:n-8], crcTable))
		}
		clock.Set(today)
		s := New(Options{MaxKeys: 64, Clock: clock.Now})
		if s.Restore(bytes.NewReader(snapshot)) != nil && s.Stats() != (Stats{}) {
			t.Fatal("a denied snapshot left something behind")
		}
		for i := range 20 {
			for _, limit := range every {
				take(t, s, fmt.Sprint("k", i), limit)
				take(t, s, "k", limit)
			}
			clock.Pass(second)
		}
		checkKeys(t, s, 64)
	})
}

// Not even with the right checksum is nonsense read.
func TestForgedSnapshotIsDenied(t *testing.T) {
	s, clock := open(0)
	take(t, s, "a", every[3])
	var b bytes.Buffer
	if err := s.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	const lo, fresh, stateA, stateB, length = 64, 72, 80, 88, 96 // where in the file
	const nonsense = "it is damaged: it contains an invalid value"
	for _, c := range []struct {
		at    int
		value uint64
		want  string
	}{
		{0, 0, "it is not a snapshot of weir's memory store"},
		{lo, 2, nonsense},
		{fresh, 1 << 53, nonsense},
		{stateA, 1 << 53, nonsense},
		{stateA, 1<<53 - 1, ""},
		{stateB, math.MaxUint64, nonsense},
		{length, 3, nonsense},
		{length, 4 * weir.MaxLogUnits, nonsense},
	} {
		forged := bytes.Clone(b.Bytes())
		binary.LittleEndian.PutUint64(forged[c.at:], c.value)
		n := len(forged) - 8
		binary.LittleEndian.PutUint64(forged[n:], crc64.Checksum(forged[:n], crcTable))
		err := New(Options{Clock: clock.Now}).Restore(bytes.NewReader(forged))
		if got := strings.TrimPrefix(fmt.Sprint(err), "memory: the snapshot cannot be used: "); got != c.want && (err != nil || c.want != "") {
			t.Errorf("%d at %d: %v, want %q", c.value, c.at, err, c.want)
		}
	}
}

func TestRestoreOfTheLongestLog(t *testing.T) {
	s, clock := open(0)
	op := weir.Op{Key: "k", Limit: weir.MustCompile("sliding_log 1048576/1d"), Cost: weir.MaxLogUnits}
	var b bytes.Buffer
	if _, err := s.Take(t.Context(), nil, op); err != nil || s.Snapshot(&b) != nil {
		t.Fatal(err)
	}
	if d := take(t, restored(t, clock, b.Bytes()), "k", op.Limit); d.Allowed {
		t.Errorf("%+v, want a denial", d)
	}
}

// busy uses the store while its snapshot is read.
type busy struct {
	io.Reader
	use func()
}

func (b busy) Read(p []byte) (int, error) {
	b.use()
	return b.Reader.Read(p)
}

func TestRestoreOfAStoreInUse(t *testing.T) {
	_, _, snapshot := used(t)
	s, _ := open(0)
	err := s.Restore(busy{bytes.NewReader(snapshot), func() { take(t, s, "early", every[0]) }})
	if err == nil || !strings.Contains(err.Error(), "was used while it was being restored") || s.Stats().Keys != 1 {
		t.Errorf("%v, then %+v", err, s.Stats())
	}
}

// Of a key that is there twice, the first counts, and once.
func TestRestoreOfAKeyTwice(t *testing.T) {
	s, clock := open(0)
	take(t, s, "a", every[0])
	var b bytes.Buffer
	if err := s.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	head, entry := b.Bytes()[:48], b.Bytes()[48:104]
	forged := append(append(bytes.Clone(head), entry...), entry...)
	forged = disk.AppendWords(forged, 0, 2, 0, 0)
	twice := restored(t, clock, binary.LittleEndian.AppendUint64(forged, crc64.Checksum(forged, crcTable)))
	checkKeys(t, twice, 1)
	if d := take(t, twice, "a", every[0]); d.Remaining != 3 {
		t.Errorf("%+v, want 3 left", d)
	}
}

// From the instant of its recovery on, a key is in no snapshot and is restored from none.
func TestSnapshotLeavesOutTheRecovered(t *testing.T) {
	s, clock := open(0)
	d := take(t, s, "a", every[0])
	var before, after bytes.Buffer
	clock.Pass(weir.Micros(d.ResetAfter.Microseconds()) - 1)
	errBefore := s.Snapshot(&before)
	clock.Pass(1)
	errAfter := s.Snapshot(&after)
	if errBefore != nil || errAfter != nil || before.Len() != 48+56+40 || after.Len() != 48+40 {
		t.Errorf("%d and then %d bytes, %v, %v", before.Len(), after.Len(), errBefore, errAfter)
	}
	if got := restored(t, clock, before.Bytes()).Stats().Keys; got != 0 {
		t.Errorf("%d keys were restored", got)
	}
}

// A snapshot that an earlier weir has written is read: the format is as it was. If it has to
// change, so has its version.
func TestEarlierSnapshot(t *testing.T) {
	earlier, err := os.ReadFile("testdata/earlier.snapshot")
	if err != nil {
		t.Fatal(err)
	}
	s, clock := open(0)
	for i, limit := range every {
		take(t, s, string(rune('a'+i)), limit)
	}
	old := restored(t, clock, earlier)
	checkKeys(t, old, int64(len(every)))
	for i, limit := range every {
		key := string(rune('a' + i))
		if got, want := take(t, old, key, limit), take(t, s, key, limit); got != want {
			t.Errorf("%v: %+v, want %+v", limit, got, want)
		}
	}
}
