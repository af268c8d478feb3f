package archive

import (
	"strings"
	"testing"
	"time"
)

func TestParseKeep(t *testing.T) {
	for text, want := range map[string]Keep{
		"":           {},
		"seconds=2h": {Second: 2 * time.Hour},
		"days=400d, hours=60d,minutes=2d,seconds=90m": {
			Second: 90 * time.Minute, Minute: 48 * time.Hour, Hour: 60 * 24 * time.Hour, Day: 400 * 24 * time.Hour,
		},
	} {
		if got, err := ParseKeep(text); err != nil || got != want {
			t.Errorf("%q: %+v %v, want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"1h":                    "cannot be read",
		"seconds=1h;minutes=1d": "cannot be read",
		"weeks=3":               "use seconds, minutes, hours, days",
		"seconds=1h,seconds=2h": "twice",
		"seconds=long":          "is no time",
		"seconds=-1h":           "is no time",
		"seconds=1s":            "econd",
	} {
		if _, err := ParseKeep(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}
