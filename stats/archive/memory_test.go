package archive_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc64"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit/archivetest"
	"github.com/weirhq/weir/stats/archive"
)

func TestSuite(t *testing.T) {
	archivetest.Run(t, func(t *testing.T) (a, b archive.Store) {
		m := openMemory(t, archive.Keep{})
		return m, m
	})
}

func TestForgets(t *testing.T) {
	m := openMemory(t, archive.Keep{Second: 10 * time.Minute, Minute: 2 * time.Hour, Hour: 48 * time.Hour, Day: 24 * 3 * time.Hour})
	for i := int64(0); i < 5*24*3600; i += 60 {
		if err := m.Add(t.Context(), []archive.Part{archivetest.Part(archive.Series, archivetest.Epoch+i, fmt.Sprint(i), archivetest.SomeFrame(2))}); err != nil {
			t.Fatal(err)
		}
	}
	for level, most := range []int{10, 120, 48, 3} {
		slots, err := m.Read(t.Context(), archive.Series, level, archivetest.Epoch+5*24*3600-7000*m.Levels(archive.Series)[level].Step, archivetest.Epoch+5*24*3600)
		if err != nil {
			t.Fatal(err)
		}
		if len(slots) > most+1 || len(slots) < most {
			t.Errorf("level %d has %d slots, want about %d", level, len(slots), most)
		}
	}
	if size := m.Size(); size.Slots > 200 || size.Bytes > 20_000 {
		t.Errorf("it holds %+v", size)
	}
}

func TestSnapshot(t *testing.T) {
	m := openMemory(t, archive.Keep{})
	for i := range int64(200) {
		if err := m.Add(t.Context(), []archive.Part{archivetest.Part(archive.Series, archivetest.Epoch+i, fmt.Sprint(i), archivetest.SomeFrame(i)), archivetest.Part(archive.Top, archivetest.Epoch+i, fmt.Sprint(i), archivetest.SomeFrame(1))}); err != nil {
			t.Fatal(err)
		}
	}
	var file bytes.Buffer
	if err := m.Snapshot(&file); err != nil {
		t.Fatal(err)
	}
	whole := file.Bytes()
	other := openMemory(t, archive.Keep{Day: 700 * 24 * time.Hour})
	if err := other.Restore(bytes.NewReader(whole)); err != nil {
		t.Fatal(err)
	}
	for level := range 4 {
		if a, b := archivetest.Total(t, m, archive.Series, level, archivetest.Epoch, archivetest.Epoch+300), archivetest.Total(t, other, archive.Series, level, archivetest.Epoch, archivetest.Epoch+300); a != b || a != 19900 {
			t.Errorf("level %d: %d were saved, %d restored", level, a, b)
		}
	}
	if a, b := m.Size(), other.Size(); a != b {
		t.Errorf("%+v were saved, %+v restored", a, b)
	}
	if err := other.Restore(bytes.NewReader(whole)); err == nil {
		t.Error("an archive in use was restored")
	}
	for name, src := range map[string][]byte{
		"empty": nil, "foreign": []byte("weirsnap12345678"), "torn": whole[:len(whole)-9],
		"longer": append(bytes.Clone(whole), 0), "newer": append([]byte("weirstat\x07"), whole[9:]...),
	} {
		fresh := openMemory(t, archive.Keep{})
		if err := fresh.Restore(bytes.NewReader(src)); err == nil || fresh.Size().Slots != 0 {
			t.Errorf("%s: %v, %+v", name, err, fresh.Size())
		}
	}
	for i := 0; i < len(whole); i += 97 {
		bad := bytes.Clone(whole)
		bad[i] ^= 0x10
		if err := openMemory(t, archive.Keep{}).Restore(bytes.NewReader(bad)); err == nil {
			t.Fatalf("byte %d is wrong, but there was no error", i)
		}
	}
}

// Notes are in the snapshot; one of a weir that had none is read as before.
func TestSnapshotOfNotes(t *testing.T) {
	m := openMemory(t, archive.Keep{})
	if err := m.Add(t.Context(), []archive.Part{archivetest.Part(archive.Series, archivetest.Epoch, "1", archivetest.SomeFrame(3))}); err != nil {
		t.Fatal(err)
	}
	var before bytes.Buffer
	if err := m.Snapshot(&before); err != nil {
		t.Fatal(err)
	}
	for _, n := range []archive.Note{archivetest.Say("a", "one", 10), archivetest.Say("\xff", "two", 20), archivetest.Say("gone", "", 30)} {
		if err := m.SetNote(t.Context(), "test", n, archivetest.At(0)); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.SetNote(t.Context(), "other", archivetest.Say("a", "x", 10), archivetest.At(0)); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := m.Snapshot(&file); err != nil {
		t.Fatal(err)
	}
	whole := file.Bytes()
	next := openMemory(t, archive.Keep{})
	if err := next.Restore(bytes.NewReader(whole)); err != nil {
		t.Fatal(err)
	}
	if got, want := archivetest.Heard(t, next, 0), archivetest.Heard(t, m, 0); got != want || !strings.Contains(got, `"\xff"="two"@20`) {
		t.Errorf("%s, want %s", got, want)
	}
	if got := archivetest.Heard(t, next, 10); got != `"gone"=""@30 "\xff"="two"@20` {
		t.Error(got)
	}
	if other, _ := next.Notes(t.Context(), "other", archivetest.At(0)); len(other) != 1 || archivetest.Total(t, next, archive.Series, 0, archivetest.Epoch, archivetest.Epoch+1) != 3 {
		t.Errorf("%+v", other)
	}
	for i := range whole {
		bad := bytes.Clone(whole)
		bad[i] ^= 0x40
		if err := openMemory(t, archive.Keep{}).Restore(bytes.NewReader(bad)); err == nil {
			t.Fatalf("byte %d is wrong, but there was no error", i)
		}
		if err := openMemory(t, archive.Keep{}).Restore(bytes.NewReader(whole[:i])); err == nil {
			t.Fatalf("%d bytes are taken for all", i)
		}
	}

	used := openMemory(t, archive.Keep{})
	if err := used.SetNote(t.Context(), "test", archivetest.Say("a", "x", 10), archivetest.At(0)); err != nil {
		t.Fatal(err)
	}
	if err := used.Restore(bytes.NewReader(whole)); err == nil || archivetest.Heard(t, used, 0) != `"a"="x"@10` {
		t.Errorf("an archive with a note was restored: %v", err)
	}
	old := openMemory(t, archive.Keep{})
	if err := old.Restore(bytes.NewReader(asVersion(1, before.Bytes()))); err != nil || archivetest.Total(t, old, archive.Series, 0, archivetest.Epoch, archivetest.Epoch+1) != 3 {
		t.Errorf("version 1: %v", err)
	}
}

// asVersion is a snapshot as it was written before there were notes, or denials, if it has
// none.
func asVersion(version byte, file []byte) []byte {
	old := bytes.Clone(file[:len(file)-8])
	old[len("weirstat")] = version
	return binary.LittleEndian.AppendUint64(old, crc64.Checksum(old, crc64.MakeTable(crc64.ECMA)))
}

// A snapshot that an earlier weir has written is read: the format is as it was. If it has to
// change, so has its version.
func TestEarlierSnapshot(t *testing.T) {
	earlier, err := os.ReadFile("testdata/earlier.snapshot")
	if err != nil {
		t.Fatal(err)
	}
	m := openMemory(t, archive.Keep{})
	if err := m.Restore(bytes.NewReader(earlier)); err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	if err := m.Snapshot(&again); err != nil || !bytes.Equal(asVersion(2, again.Bytes()), earlier) {
		t.Errorf("%x was written, %x read, %v", again.Bytes(), earlier, err)
	}
	if got := archivetest.Total(t, m, archive.Series, 0, archivetest.Epoch, archivetest.Epoch+3); got != 6 || archivetest.Heard(t, m, 0) != `"a"="one"@10` {
		t.Errorf("it has %d requests and the notes %s", got, archivetest.Heard(t, m, 0))
	}
}

// What may still be revised is in a snapshot, too, with its denials, and goes on being
// revised here.
func TestSnapshotOfRevisions(t *testing.T) {
	m := openMemory(t, archive.Keep{})
	part := func(revision int64) archive.Part {
		f := &archive.Frame{Denials: []archive.Denial{{At: 1, Rule: "api", Key: "user:eve", Path: "/a/{id}"}}}
		f.Ranking("").Denied = archive.Sketch{Entries: []archive.Entry{{Key: "user:eve", Count: revision}}, Total: revision}
		p := archivetest.Part(archive.Top, archivetest.Epoch, "a", f)
		p.Revision = revision
		return p
	}
	add := func(m *archive.Memory, p archive.Part) {
		t.Helper()
		if err := m.Add(t.Context(), []archive.Part{p}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(m *archive.Memory, denied int64, samples int) {
		t.Helper()
		for level := range 3 {
			slots, err := m.Read(t.Context(), archive.Top, level, archivetest.Epoch-3600, archivetest.Epoch+3600)
			if err != nil || len(slots) != 1 || slots[0].Frame.Top[""].Denied.Of("user:eve") != denied || len(slots[0].Frame.Denials) != samples {
				t.Fatalf("level %d: %+v, %v; want %d", level, slots, err, denied)
			}
		}
	}
	add(m, part(5))
	var file bytes.Buffer
	if err := m.Snapshot(&file); err != nil {
		t.Fatal(err)
	}
	other := openMemory(t, archive.Keep{})
	if err := other.Restore(bytes.NewReader(file.Bytes())); err != nil {
		t.Fatal(err)
	}
	add(m, part(7))
	want(m, 7, 1)
	want(other, 5, 1)
	add(other, part(2)) // of the next process
	want(other, 7, 2)
	if err := m.Restore(bytes.NewReader(file.Bytes())); err == nil {
		t.Error("an archive in use was restored")
	}
}
