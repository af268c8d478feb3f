package counter_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
)

func TestWindowNames(t *testing.T) {
	for _, w := range counter.Windows() {
		if got, err := counter.ParseWindow(w.String()); err != nil || got != w {
			t.Errorf("%v is %v, %v", w, got, err)
		}
		text, err := json.Marshal(w)
		var back counter.Window
		if err2 := json.Unmarshal(text, &back); err != nil || err2 != nil || back != w {
			t.Errorf("%s is %v, %v, %v", text, back, err, err2)
		}
	}
	if _, err := counter.ParseWindow("week"); err == nil || !strings.Contains(err.Error(), "second, minute, hour, day, month or year") {
		t.Errorf("ParseWindow = %v", err)
	}
	if got := counter.Window(9).String(); got != "Window(9)" {
		t.Error(got)
	}
}

var zones = []string{"UTC", "Asia/Shanghai", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia", "America/Sao_Paulo", "America/Asuncion"}

// An instant is in the window that the wall clocks of its zone say, and windows follow
// one another.
func TestWindowIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone, err := time.LoadLocation(rapid.SampledFrom(zones).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		now := time.UnixMicro(rapid.Int64Range(0, 4e15).Draw(t, "now")).In(zone)
		at := func(w counter.Window, now time.Time) int64 { return w.Index(weir.MicrosOf(now), zone) }

		day := counter.Day.Start(at(counter.Day, now), zone)
		if y, m, d := now.Date(); day.Year() != y || day.Month() != m || day.Day() != d {
			t.Fatalf("%v is on the day of %v", now, day)
		}
		if at(counter.Day, day) != at(counter.Day, now) || at(counter.Day, day.Add(-time.Microsecond)) != at(counter.Day, now)-1 {
			t.Fatalf("the day of %v does not begin at %v", now, day)
		}
		for _, w := range []counter.Window{counter.Month, counter.Year} {
			start := w.Start(at(w, now), zone)
			if y, m, _ := now.Date(); start.Year() != y || w == counter.Month && start.Month() != m {
				t.Fatalf("%v is in the %v of %v", now, w, start)
			}
			if at(w, start) != at(w, now) || at(w, start.Add(-time.Microsecond)) != at(w, now)-1 {
				t.Fatalf("the %v of %v does not begin at %v", w, now, start)
			}
		}
		for _, w := range []counter.Window{counter.Second, counter.Minute} {
			start := w.Start(at(w, now), zone)
			if !start.Equal(now.Truncate(w.Width())) { // all zones have whole minutes these days
				t.Fatalf("%v of %v begins at %v", w, now, start)
			}
		}
		hour := counter.Hour.Start(at(counter.Hour, now), zone)
		if into := now.Sub(hour); into < 0 || into >= 90*time.Minute || hour.Minute() != 0 && into >= 30*time.Minute {
			t.Fatalf("the hour of %v begins at %v", now, hour)
		}
		if later := at(counter.Hour, now.Add(time.Hour)); later < at(counter.Hour, now) || later > at(counter.Hour, now)+2 {
			t.Fatalf("an hour after %v it is %d after %d", now, later, at(counter.Hour, now))
		}
	})
	if counter.Ever.Index(12345, nil) != 0 || !counter.Ever.Start(0, nil).IsZero() || counter.Ever.Width() != 0 {
		t.Error("ever is a window")
	}
}

func TestRetentionDefaults(t *testing.T) {
	r := counter.Retention{}.WithDefaults()
	if r.Seconds != 3600 || r.Minutes != 1440 || r.Hours != 720 || r.Days != 366 || r.Months != 60 || r.Years != 10 || r.Ever != 366*24*time.Hour {
		t.Errorf("%+v", r)
	}
	r = counter.Retention{Ever: time.Hour, Seconds: 1 << 30, Minutes: 2, Hours: -1, Days: 1 << 30, Months: 1 << 30, Years: 1 << 30}.WithDefaults()
	if r.Days != counter.MaxHistory || r.Months != 2400 || r.Years != 200 {
		t.Errorf("%+v", r)
	}
	for _, w := range counter.Windows() {
		if after := min(r.After(w), r.DistributionAfter(w), r.BoardAfter(w)); after < w.Width() || after <= 0 {
			t.Errorf("by %v it is kept for %v", w, after)
		}
	}
	if r.Seconds != counter.MaxHistory || r.Minutes != 2 || r.Hours != 720 || r.After(counter.Ever) != time.Hour || r.After(counter.Minute) != 3*time.Minute {
		t.Errorf("%+v", r)
	}
}
