package counter_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
)

func TestParseRetention(t *testing.T) {
	for text, want := range map[string]counter.Retention{
		"": {},
		"seconds=1h,minutes=1d,hours=30d,days=366d,months=60,years=10,ever=366d": counter.Retention{}.WithDefaults(),
		"days=1d":                    {Days: 1},
		" hours=1d , ever = 90m ":    {Hours: 24, Ever: 90 * time.Minute},
		"seconds=10000s,months=2400": {Seconds: 10_000, Months: 2400},
		"years=200,ever=10000d":      {Years: 200, Ever: 10_000 * 24 * time.Hour},
	} {
		if got, err := counter.ParseRetention(text); err != nil || got != want {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"days":                     "retention: \"days\" cannot be read",
		"days=1d;hours=1h":         "cannot be read",
		"weeks=1w":                 "\"weeks\" is unknown; use seconds",
		"evers=1d":                 "unknown",
		"days=36h":                 "days: \"36h\" is not valid; write a duration of 1 to 10000 whole days, such as 2d, once",
		"days=1":                   "days: ",
		"days=0":                   "days: ",
		"days=10001d":              "days: ",
		"seconds=3h":               "seconds: \"3h\" is not valid; write a duration of 1 to 10000 whole seconds",
		"days=-1d":                 "days: ",
		"days=1d,hours=1h,days=2d": "days: \"1d\" is not valid",
		"hours=1h,days=1d,days=2d": "cannot be read",
		"months=1d":                "months: \"1d\" is not valid; write a number from 1 to 2400, once",
		"months=0":                 "months: ",
		"years=201":                "years: ",
		"ever=0":                   "ever: ",
		"ever=1ms":                 "ever: ",
		"ever=10001d":              "ever: ",
		"ever=1d,days=1d,ever=1d":  "ever: ",
	} {
		_, err := counter.ParseRetention(text)
		if !errors.As(err, new(*weir.InvalidError)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
