package envoyconfig

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
)

func TestParseHolds(t *testing.T) {
	for text, want := range map[string]string{
		"":                "[]",
		"request_id=4000": "[hold: {id: request_id}, reserve: 4000, hold_ttl: 10m, on_expiry: keep]",
		"a=1, end=phase:done, hold_ttl=1h, on_expiry=release; rule-0-match-1=5": "[hold: {id: a, end: {phase: done}}, reserve: 1, hold_ttl: 1h, on_expiry: release hold: {id: rule-0-match-1}, reserve: 5, hold_ttl: 10m, on_expiry: keep]",

		"request_id":         `"request_id" is invalid; write name=value`,
		"a=1;a=2":            `"a" is given twice; write it once`,
		"a=0":                `"a": "0" is not a number of units; write how many to reserve, as in a=4000`,
		"a=-1":               `"a": "-1" is not a number of units; write how many to reserve, as in a=4000`,
		"a=9999999999999999": `"a": "9999999999999999" is not a number of units; write how many to reserve, as in a=4000`,
		"a=1,end=done":       `"a": end: "done" is not another entry; write a key and a value, as in phase:done`,
		"a=1,end=a:b":        `"a": end: "a:b" is not another entry; write a key and a value, as in phase:done`,
		"a=1,hold_ttl=0s":    `"a": hold_ttl: 0s is not a time that a hold of Envoy can last; write 1s to 24h`,
		"a=1,hold_ttl=25h":   `"a": hold_ttl: 25h is not a time that a hold of Envoy can last; write 1s to 24h`,
		"a=1,on_expiry=x":    `"a": on_expiry: "x" is unknown; choose one of keep, release`,
		"a=1,ttl=1h":         `"a": ttl: the option is unknown; use end, hold_ttl or on_expiry`,
	} {
		holds, err := ParseHolds(text)
		got := fmt.Sprint(pointers(holds))
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func pointers(holds []Hold) (all []*Hold) {
	for i := range holds {
		all = append(all, &holds[i])
	}
	return all
}

// A configuration that cannot say it has the holds and the calendar of the flags, and those that can say it have
// their own.
func TestFlagsForOthers(t *testing.T) {
	holds, err := ParseHolds("id=4,end=phase:done; other=7")
	if err != nil {
		t.Fatal(err)
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	c, problems := Read([]File{{Name: "x.yaml", Source: []byte(`
domain: d
descriptors:
  - key: user
    rate_limit: {unit: month, requests_per_unit: 9}
    descriptors:
      - {key: id, rate_limit: {unit: day, requests_per_unit: 3}}
      - {key: other, hold: {id: mine}, reserve: 2, rate_limit: {unit: month, zone: UTC, requests_per_unit: 9}}
      - {key: id, value: own, charge: always, rate_limit: {unit: hour, requests_per_unit: 3}}
  - key: other
    descriptors:
      - {key: model, rate_limits: [{unit: week, requests_per_unit: 9}, {unit: hour, requests_per_unit: 9}, {unit: 30d, requests_per_unit: 8}, {unit: day, algorithm: sliding_log, requests_per_unit: 7}]}
`)}}, Options{Holds: holds, Calendar: berlin})
	if c == nil {
		t.Fatal(problems)
	}
	const want = `d.user: unit=MONTH requests_per_unit=9, shadow_mode: false, quota_mode: false, zone: Europe/Berlin
d.user.id: unit=DAY requests_per_unit=3, shadow_mode: false, quota_mode: false, zone: Europe/Berlin, hold: {id: id, end: {phase: done}}, reserve: 4, hold_ttl: 10m, on_expiry: keep
d.user.other: unit=MONTH requests_per_unit=9, shadow_mode: false, quota_mode: false, zone: UTC, hold: {id: mine}, reserve: 2, hold_ttl: 10m, on_expiry: keep
d.user.id_own: unit=HOUR requests_per_unit=3, shadow_mode: false, quota_mode: false, charge: always
d.other.model: unit=WEEK requests_per_unit=9, shadow_mode: false, quota_mode: false, zone: Europe/Berlin, hold: {id: other}, reserve: 7, hold_ttl: 10m, on_expiry: keep
d.other.model: unit=HOUR requests_per_unit=9, shadow_mode: false, quota_mode: false, hold: {id: other}, reserve: 7, hold_ttl: 10m, on_expiry: keep
d.other.model: unit=MONTH requests_per_unit=8, shadow_mode: false, quota_mode: false, hold: {id: other}, reserve: 7, hold_ttl: 10m, on_expiry: keep
d.other.model: unit=DAY requests_per_unit=7, shadow_mode: false, quota_mode: false, algorithm: sliding_log, hold: {id: other}, reserve: 7, hold_ttl: 10m, on_expiry: keep
`
	var b strings.Builder
	if err := c.Dump(&b); err != nil || b.String() != want {
		t.Errorf("%v\n%s", err, b.String())
	}
	if len(problems) != 1 || !strings.HasSuffix(problems[0].Message, "reserve: 4 exceeds the limit of 3, so every request is denied; reserve less") {
		t.Error(problems)
	}
	if got := c.Own(); !slices.Equal(got, []string{"algorithm", "charge", "hold", "rate_limits", "reserve", "unit (a period)", "zone"}) {
		t.Errorf("%q are fields that only weir knows", got)
	}
	n, err := c.Domain("d").Override(&Query{}, 5, Month, 1)
	if err != nil || n.Limits[0].Zone != berlin || n.Terms(false, false).Limits[0].Limit().Period != weir.Month {
		t.Errorf("%v, and a limit of a request is %+v", err, n.Limits)
	}
}

// The entries about a hold are no part of the counter's key, wherever they are.
func TestHoldEntries(t *testing.T) {
	d := read(t, `
domain: d
descriptors:
  - key: user
    descriptors:
      - {key: tokens, hold: {id: id, end: {phase: done}}, rate_limit: {unit: day, requests_per_unit: 9}}
      - {key: id, descriptors: [{key: inner, hold: {id: id}, reserve: 1, rate_limit: {unit: day, requests_per_unit: 9}}]}
  - {key: plain, rate_limit: {unit: day, requests_per_unit: 9}}
`).Domain("d")
	for list, want := range map[string]string{
		"user=a,tokens=":                     "d|user=a|tokens= ",
		"user=a,tokens=,id=7":                "d|user=a|tokens= 7",
		"id=7,user=a,tokens=,phase=done":     "d|user=a|tokens= 7 ends",
		"user=a,phase=done,tokens=,id=":      "d|user=a|tokens=  ends",
		"user=a,tokens=,id=7,phase=begun":    "",
		"user=a,tokens=,id=7,id=8":           "",
		"user=a,tokens=,id=7,more=":          "",
		"user=a,id=7,inner=":                 "d|user=a|inner= 7",
		"user=a,id=7,inner=,phase=done":      "",
		"plain=x,id=7":                       "",
		"plain=x,phase=done":                 "",
		"plain=x":                            "d|plain=x ",
		"id=7":                               "",
		"id=7,phase=done":                    "",
		"user=a,tokens=,phase=done,phase=no": "",
	} {
		q := query(list)
		got := ""
		if n := d.Find(q); n != nil {
			got = string(d.AppendKey(nil, q.Entries)) + " " + q.ID
			if q.Ends {
				got += " ends"
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", list, got, want)
		}
	}
}
