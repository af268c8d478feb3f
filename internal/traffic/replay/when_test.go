package replay

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Every instant is read back, in every way in which servers write it.
func TestParseTimeAgreesWithTheLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.Int64Range(0, latest*million-1).Draw(t, "at")
		zone := time.FixedZone("", 60*rapid.IntRange(-14*60, 14*60).Draw(t, "zone"))
		at := time.UnixMicro(want).In(zone)
		second := want - want%million
		for text, want := range map[string]int64{
			at.Format("02/Jan/2006:15:04:05 -0700"):            second,
			at.Format("2006-01-02T15:04:05.000000Z07:00"):      want,
			at.Format("2006-01-02T15:04:05.000000000-0700"):    want,
			at.UTC().Format("2006-01-02 15:04:05"):             second,
			at.UTC().Format("2006-01-02T15:04:05.999999Z"):     want,
			fmt.Sprintf("%d.%06d", want/million, want%million): want,
			fmt.Sprint(want / million):                         second,
		} {
			got, whole, err := parseTime([]byte(text))
			if err != nil || got != want || whole != (want%million == 0) {
				t.Fatalf("%q is %d, %t, %v; want %d", text, got, whole, err, want)
			}
		}
	})
}

func TestUnixTimeUnits(t *testing.T) {
	const want = 1_794_738_615_250_000
	for _, text := range []string{"1794738615.25", "1794738615250", "1794738615250.0009", "1794738615250000", "1794738615250000999"} {
		if got, _, err := parseTime([]byte(text)); err != nil || got != want {
			t.Errorf("%s is %d, %v; want %d", text, got, err, int64(want))
		}
	}
}
