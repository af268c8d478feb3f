package archive

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/testredis"
	"github.com/weirhq/weir/stats/frame"
)

// Whatever is added, late or twice, and whoever rolls up in between: every level has
// the same sum at every moment, and it is the right one.
func TestLevelsAgree(t *testing.T) {
	server := testredis.Start(t)
	client := clientOf(t, server)
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		o := Options{Prefix: fmt.Sprintf("run%d:", run)}
		shared := []keeper{openRedis(t, client, o), openRedis(t, client, o)}
		alone := openMemory(t, Options{})
		now, want, sent := int64(epoch), int64(0), []Part{}
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
				if err := a.Add(t.Context(), []Part{again}); err != nil {
					rt.Fatal(err)
				}
			default:
				n := rapid.Int64Range(1, 1000).Draw(rt, "n")
				late := rapid.SampledFrom([]int64{0, 0, 1, 5, 100}).Draw(rt, "late")
				p := part(Series, now-late, fmt.Sprint("part", step), someFrame(n))
				for _, k := range []keeper{a, alone} {
					if err := k.Add(t.Context(), []Part{p}); err != nil {
						rt.Fatal(err)
					}
				}
				sent, want = append(sent, p), want+n
			}
			if step%5 > 0 {
				continue
			}
			for who, k := range map[string]keeper{"memory": alone, "redis": shared[0], "redis again": shared[1]} {
				// What is left of the seconds after an hour is no part of the promise.
				for level := range k.Levels(Series) {
					if level == 0 && now > epoch+hour-200 {
						continue
					}
					if got := total(t, k, Series, level, epoch-200, now+1); got != want {
						rt.Fatalf("after step %d, level %d of %s has %d, want %d", step, level, who, got, want)
					}
				}
			}
		}
	})
}

// What is rolled up is kept when the seconds are gone, and then a late part changes
// nothing.
func TestSecondsExpire(t *testing.T) {
	server := testredis.Start(t)
	a := openRedis(t, clientOf(t, server), Options{})
	for i := range int64(90) {
		if err := a.Add(t.Context(), []Part{part(Series, epoch+i, fmt.Sprint(i), someFrame(10))}); err != nil {
			t.Fatal(err)
		}
	}
	// The last minute goes on, and yet it is written down.
	if err := a.RollUp(t.Context(), time.Unix(epoch+90, 0)); err != nil {
		t.Fatal(err)
	}
	for i := range int64(90) {
		server.Do("DEL", a.slotKey(Series, 1, epoch+i))
	}
	later := epoch + hour + slack + 200
	if err := a.Add(t.Context(), []Part{part(Series, epoch, "late", someFrame(10))}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := a.RollUp(t.Context(), time.Unix(int64(later), 0)); err != nil {
			t.Fatal(err)
		}
	}
	for level := 1; level < 4; level++ {
		if got := total(t, a, Series, level, epoch-day, epoch+day); got != 900 {
			t.Errorf("level %d has %d, want 900", level, got)
		}
	}
	if marks := server.Do("HGETALL", a.marksKey(Series, minute)); marks != "" {
		t.Errorf("marks are left: %q", marks)
	}
}

// A sum is not written when something has changed since it was added up, nor when
// another has written it meanwhile.
func TestStaleSums(t *testing.T) {
	server := testredis.Start(t)
	a := openRedis(t, clientOf(t, server), Options{})
	add := func(id string) (mark string) {
		if err := a.Add(t.Context(), []Part{part(Series, epoch, id, someFrame(10))}); err != nil {
			t.Fatal(err)
		}
		marks, err := a.marks(t.Context(), Series, 1)
		if err != nil {
			t.Fatal(err)
		}
		return marks[a.Levels(Series)[1].Start(epoch)]
	}
	client, err := a.client()
	if err != nil {
		t.Fatal(err)
	}
	start := a.Levels(Series)[1].Start(epoch)
	write := func(mark, sum string) bool {
		keys := []string{a.slotKey(Series, minute, start), a.marksKey(Series, minute)}
		n, err := rollScript.Exec(t.Context(), client, keys, []string{mark, seconds(start), sum, "1000"}).AsInt64()
		if err != nil {
			t.Fatal(err)
		}
		return n == 1
	}
	old := add("1")
	mark := add("2")
	right := string(someFrame(20).Append(nil))
	switch {
	case write(old, string(someFrame(10).Append(nil))):
		t.Error("a sum without the second part is written")
	case !write("", right) || !write(mark, right):
		t.Error("the right sum is not written")
	case write(mark, "stale"), write("", "stale"):
		t.Error("a slot that is done is written again")
	}
	if got := total(t, a, Series, 1, epoch-60, epoch+60); got != 20 {
		t.Errorf("the minute has %d", got)
	}
}

// Everything in Redis has an end, and is on one slot of a cluster.
func TestKeys(t *testing.T) {
	server := testredis.Start(t)
	a := openRedis(t, clientOf(t, server), Options{Prefix: "test:"})
	for kind := range Kinds {
		if err := a.Add(t.Context(), []Part{part(kind, epoch, "1", someFrame(3))}); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.RollUp(t.Context(), time.Unix(epoch+2*day, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Lead(t.Context(), "test", time.Second); err != nil {
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
	c := testredis.StartCluster(t)
	client := clusterClient(t, c.Addrs)
	a := openRedis(t, client, Options{})
	parts := []Part{part(Series, epoch, "1", someFrame(8)), part(Rules, epoch, "2", someFrame(4)), part(Series, epoch+61, "3", someFrame(2))}
	if err := a.Add(t.Context(), parts); err != nil {
		t.Fatal(err)
	}
	if err := a.RollUp(t.Context(), time.Unix(epoch+7200, 0)); err != nil {
		t.Fatal(err)
	}
	if got := sums(t, a, epoch-60, epoch+120); got != "[10 10 10 10]" {
		t.Errorf("the levels have %s", got)
	}
}

// One leads, until it is gone.
func TestLead(t *testing.T) {
	server := testredis.Start(t)
	client := clientOf(t, server)
	a, b := openRedis(t, client, Options{}), openRedis(t, client, Options{})
	leads := func(k keeper) bool {
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
		t.Error("nobody took over")
	}
	if yes, _ := openMemory(t, Options{}).Lead(t.Context(), "alerts", time.Minute); !yes {
		t.Error("an archive in memory has another leader")
	}
}

func TestMemoryForgets(t *testing.T) {
	m := openMemory(t, Options{Keep: Keep{Second: 10 * time.Minute, Minute: 2 * time.Hour, Hour: 48 * time.Hour, Day: 24 * 3 * time.Hour}})
	for i := int64(0); i < 5*day; i += 60 {
		if err := m.Add(t.Context(), []Part{part(Series, epoch+i, fmt.Sprint(i), someFrame(2))}); err != nil {
			t.Fatal(err)
		}
	}
	for level, most := range []int{10, 120, 48, 3} {
		slots, err := m.Read(t.Context(), Series, level, epoch+5*day-7000*m.Levels(Series)[level].Step, epoch+5*day)
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

func TestKeepIsChecked(t *testing.T) {
	for _, k := range []Keep{{Second: time.Second}, {Minute: time.Hour}, {Hour: -1}, {Day: 1e6 * time.Hour}} {
		if _, err := NewMemory(Options{Keep: k}); err == nil {
			t.Errorf("%+v is accepted", k)
		}
	}
	if _, err := NewRedis(nil, Options{}); err == nil {
		t.Error("no client is accepted")
	}
	if _, err := openMemory(t, Options{}).Read(t.Context(), Series, 0, 0, epoch); err == nil {
		t.Error("sixty years of seconds are read")
	}
}

// Rankings and details climb their own levels.
func TestOtherKinds(t *testing.T) {
	server := testredis.Start(t)
	for name, a := range map[string]keeper{"memory": openMemory(t, Options{}), "redis": openRedis(t, clientOf(t, server), Options{})} {
		for i := range int64(60) {
			f := &frame.Frame{}
			f.Ranking("").Denied = frame.Sketch{Entries: []frame.Entry{{Key: "user:alice", Count: 3}}, Total: 3}
			f.Detail("api").Decision.Record(time.Millisecond)
			if err := a.Add(t.Context(), []Part{part(Top, epoch+10*i, fmt.Sprint("t", i), f), part(Rules, epoch+10*i, fmt.Sprint("r", i), f)}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // before and after
			for level := range 3 {
				count, timed := int64(0), int64(0)
				top, err := a.Read(t.Context(), Top, level, epoch, epoch+600)
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range top {
					count += s.Frame.Top[""].Denied.Entries[0].Count
				}
				rules, err := a.Read(t.Context(), Rules, level, epoch, epoch+600)
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range rules {
					timed += s.Frame.Details["api"].Decision.Count
				}
				if count != 180 || timed != 60 {
					t.Errorf("%s: level %d has %d denials and %d times", name, level, count, timed)
				}
			}
			if err := a.RollUp(t.Context(), time.Unix(epoch+day, 0)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestSnapshot(t *testing.T) {
	m := openMemory(t, Options{})
	for i := range int64(200) {
		if err := m.Add(t.Context(), []Part{part(Series, epoch+i, fmt.Sprint(i), someFrame(i)), part(Top, epoch+i, fmt.Sprint(i), someFrame(1))}); err != nil {
			t.Fatal(err)
		}
	}
	var file bytes.Buffer
	if err := m.Snapshot(&file); err != nil {
		t.Fatal(err)
	}
	whole := file.Bytes()
	other := openMemory(t, Options{Keep: Keep{Day: 700 * 24 * time.Hour}})
	if err := other.Restore(bytes.NewReader(whole)); err != nil {
		t.Fatal(err)
	}
	for level := range 4 {
		if a, b := total(t, m, Series, level, epoch, epoch+300), total(t, other, Series, level, epoch, epoch+300); a != b || a != 19900 {
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
		fresh := openMemory(t, Options{})
		if err := fresh.Restore(bytes.NewReader(src)); err == nil || fresh.Size().Slots != 0 {
			t.Errorf("%s: %v, %+v", name, err, fresh.Size())
		}
	}
	for i := 0; i < len(whole); i += 97 {
		bad := bytes.Clone(whole)
		bad[i] ^= 0x10
		if err := openMemory(t, Options{}).Restore(bytes.NewReader(bad)); err == nil {
			t.Fatalf("byte %d is wrong, and nobody notices", i)
		}
	}
}
