package alert

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	got, err := Parse("denied=10%,window=5m,minimum=7,hold=1m,cooldown=10m; slow = 3,baseline=40m;hot_key=off")
	if err != nil {
		t.Fatal(err)
	}
	want := Defaults()
	for i := range want {
		switch c := &want[i]; c.Kind {
		case Denied:
			c.Threshold, c.Window, c.Minimum, c.Hold, c.Cooldown = 0.1, 5*time.Minute, 7, time.Minute, 10*time.Minute
		case Slow:
			c.Threshold, c.Baseline = 3, 40*time.Minute
		case HotKey:
			c.Off = true
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant\n%+v", got, want)
	}
	if got, err := Parse(""); err != nil || !slices.Equal(got, Defaults()) {
		t.Errorf("nothing is %v %v, not the defaults", got, err)
	}
	for text, want := range map[string]string{
		"denied":                 "write name=value",
		"thrott=5%":              "unknown check",
		"denied=5%;denied=6%":    "is given twice",
		"denied=much":            "is not a threshold",
		"denied=-1%":             "is not a threshold",
		"denied=NaN":             "is not a threshold",
		"denied=0":               "is not a threshold",
		"denied=5%,window=0s":    "window",
		"denied=5%,window=never": "window",
		"denied=5%,minimum=0":    "minimum",
		"denied=5%,colour=red":   "unknown option",
		"denied=5%,window=400d":  "indow",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}
