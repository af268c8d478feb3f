package envoyrls

import (
	"testing"
	"time"
)

const holdFile = `
domain: d
descriptors:
  - key: user
    descriptors:
      - key: tokens
        hold: {id: request_id, end: {phase: done}}
        reserve: 40
        rate_limit: {unit: hour, requests_per_unit: 100}
      - key: gone
        hold: {id: request_id, end: {phase: done}}
        reserve: 40
        on_expiry: release
        rate_limit: {unit: hour, requests_per_unit: 100}
      - key: own
        hold: {id: request_id, end: {phase: done}}
        rate_limit: {unit: hour, requests_per_unit: 100}
      - key: addend
        hold: {id: request_id}
        reserve: 40
        rate_limit: {unit: hour, requests_per_unit: 100}
      - key: trial
        shadow_mode: true
        hold: {id: request_id, end: {phase: done}}
        reserve: 40
        rate_limit: {unit: hour, requests_per_unit: 100}
  - {key: two, rate_limit: {unit: minute, requests_per_unit: 2, name: pair}}
  - {key: none, rate_limit: {unit: day, requests_per_unit: 0}}
  - key: org
    hold: {id: request_id, end: {phase: done}}
    reserve: 60
    rate_limit: {unit: hour, requests_per_unit: 100}
  - {key: better, rate_limit: {unit: day, requests_per_unit: 9, replaces: [{name: pair}]}}
`

func TestHolds(t *testing.T) {
	const at = " of 100/hour in 3599s"
	left := func(n string) string { return "ok | ok " + n + at }
	for name, steps := range map[string][]step{
		"begin and end": {
			{request("user=a,tokens=,request_id=1 x0"), left("60")},
			{request("user=a,tokens=,request_id=2 x0"), left("20")},
			{request("user=a,tokens=,request_id=3 x0"), "over | over 0" + at},
			{request("user=a,tokens=,request_id=1,phase=done x10"), "ok | ok 0"},
			{request("user=a,tokens=,request_id=3 x0"), left("10")},
			{request("user=a,tokens=,request_id=2,phase=done x0"), "ok | ok 0"},
			{request("user=a,tokens=,request_id=3,phase=done x5"), "ok | ok 0"},
			{request("user=a,tokens=,request_id=4 x0"), left("45")}, // 10 + 0 + 5 were used
			{request("user=b,tokens=,request_id=4 x0"), left("60")},
		},
		"more than was reserved, beyond the limit": {
			{request("user=a,tokens=,request_id=1"), left("60")},
			{request("user=a,tokens=,request_id=1,phase=done x150"), "ok | ok 0"},
			{request("user=a,tokens=,request_id=2"), "over | over 0" + at},
		},
		"an end without a hold is charged what it says": {
			{request("user=a,tokens=,request_id=1,phase=done x30"), "ok | ok 0"},
			{request("user=a,tokens=,request_id=1"), left("30")},
			{request("user=a,tokens=,request_id=2"), "over | over 0" + at},
			{request("user=a,tokens=,request_id=2,phase=done x1"), "ok | ok 0"}, // what was denied was done nevertheless
			{request("user=a,tokens=,request_id=1,phase=done x40"), "ok | ok 0"},
			{request("user=a,tokens=,request_id=1,phase=done x69"), "ok | ok 0"}, // and once more
			{request("user=a,tokens=,request_id=3"), "over | over 0" + at},
		},
		"several holds of one id": {
			{request("user=a,tokens=,request_id=1"), left("60")},
			{request("user=a,tokens=,request_id=1"), left("20")},
			{request("user=a,tokens=,request_id=1,phase=done x1"), "ok | ok 0"},
			{request("user=a,tokens=,request_id=1"), left("19")},
			{request("user=a,tokens=,request_id=1,phase=done x2"), "ok | ok 0"},
			{request("user=a,tokens=,request_id=1,phase=done x3"), "ok | ok 0"},
			{request("user=a,tokens=,request_id=2"), left("54")},
		},
		"ids of different descriptors are different": {
			{request("user=a,tokens=,request_id=1"), left("60")},
			{request("user=b,tokens=,request_id=1,phase=done x7"), "ok | ok 0"},
			{request("user=a,own=,request_id=1,phase=done x7"), "ok | ok 0"},
			{request("user=a,tokens=,request_id=1,phase=done x7"), "ok | ok 0"},
			{request("user=b,tokens=,request_id=2"), left("53")},
			{request("user=a,own=,request_id=2 x0"), left("93")},
			{request("user=a,tokens=,request_id=2"), left("53")},
		},
		"without an id": {
			{request("user=a,tokens="), left("60")},
			{request("user=a,tokens=,phase=done x30"), "ok | ok 30" + at},
			{request("user=a,tokens=,request_id= x0"), "over | over 0" + at},
		},
		"what is reserved is the addend": {
			{request("user=a,own=,request_id=1 x25"), left("75")},
			{request("user=a,own=,request_id=2 x0"), left("75")}, // which is a look
			{request("user=a,own=,request_id=1,phase=done x5"), "ok | ok 0"},
			{request("user=a,own=,request_id=3"), left("94")},
		},
		"an addend of 0 begins": {
			{request("user=a,addend=,request_id=1 x0"), left("60")},
			{request("user=a,addend=,request_id=1 x7"), "ok | ok 0"},
			{request("user=a,addend=,request_id=2 x0"), left("53")},
			{request("user=a,addend=,request_id=2"), "ok | ok 0"}, // none counts as 1
			{request("user=a,addend=,request_id=3 x0"), left("52")},
		},
		"lists that no descriptor has": {
			{request("user=a,tokens=,request_id=1,other=x"), "ok | ok 0"},
			{request("user=a,tokens=,phase=begun,request_id=1"), "ok | ok 0"},
			{request("two=a,request_id=1"), "ok | ok 0"},
			{request("request_id=1"), "ok | ok 0"},
			{request("request_id=1,user=a,tokens="), left("60")}, // the place does not matter
			{request("user=a,tokens="), left("20")},
		},
		"with others, all or none": {
			{request("user=a,tokens=,request_id=1", "two=a"), "ok | ok 60" + at + " | ok 1 of 2/minute pair in 59s"},
			{request("user=a,tokens=,request_id=2", "two=a x2"), "over | ok 60" + at + " | over 0 of 2/minute pair in 59s"},
			{request("user=a,tokens=,request_id=3", "none=a"), "over | ok 60" + at + " | over 0 of 0/day in 86399s"},
			{request("user=a,tokens=,request_id=1,phase=done x7", "none=a"), "over | ok 0 | over 0 of 0/day in 86399s"}, // it ends nevertheless
			{request("user=a,tokens=,request_id=4", "two=a"), "ok | ok 53" + at + " | ok 0 of 2/minute pair in 59s"},
			{request("user=a,tokens=,request_id=5", "two=a", "better=a"), "ok | ok 13" + at + " | ok 0 | ok 8 of 9/day in 86399s"},
		},
		"two holds, all or none": {
			{request("user=a,tokens=,request_id=1", "org=o,request_id=1", "two=a"), "ok | ok 60" + at + " | ok 40" + at + " | ok 1 of 2/minute pair in 59s"},
			{request("user=a,tokens=,request_id=2", "org=o,request_id=2", "two=a"), "over | ok 60" + at + " | over 0" + at + " | ok 1 of 2/minute pair in 59s"},
			{request("user=a,tokens=,request_id=1,phase=done x1", "org=o,request_id=1,phase=done x2"), "ok | ok 0 | ok 0"},
			{request("user=a,tokens=,request_id=3", "org=o,request_id=3", "two=a"), "ok | ok 59" + at + " | ok 38" + at + " | ok 0 of 2/minute pair in 59s"},
			{request("user=b,tokens=,request_id=3", "org=p,request_id=3", "two=a"), "over | ok 100" + at + " | ok 100" + at + " | over 0 of 2/minute pair in 59s"},
			{request("user=b,tokens=,request_id=3", "org=p,request_id=3", "two=b"), "ok | ok 60" + at + " | ok 40" + at + " | ok 1 of 2/minute pair in 59s"},
		},
		"a shadow": {
			{request("user=a,trial=,request_id=1"), left("60")},
			{request("user=a,trial=,request_id=2"), left("20")},
			{request("user=a,trial=,request_id=3"), left("0")},
			{request("user=a,trial=,request_id=1,phase=done x1"), "ok | ok 0"},
			{request("user=a,trial=,request_id=3,phase=done x2"), "ok | ok 0"},
			{request("user=a,trial=,request_id=4"), left("17")},
		},
		"a limit of the request": {
			{request("user=a,tokens=,request_id=1 x0 50/hour"), "ok | ok 10 of 50/hour in 3599s"},
			{request("user=a,tokens=,request_id=2 x0 50/hour"), "over | over 0 of 50/hour in 3599s"},
			{request("user=a,tokens=,request_id=1,phase=done x1 50/hour"), "ok | ok 0"},
			{request("user=a,tokens=,request_id=3 x0 50/hour"), "ok | ok 9 of 50/hour in 3599s"},
		},
	} {
		t.Run(name, func(t *testing.T) { newBench(t, holdFile, Options{}).run(t, steps...) })
	}
}

// What a late end is charged: all it says. With keep, the estimate stays charged besides.
func TestLateEnds(t *testing.T) {
	for key, want := range map[string]string{"tokens": "ok | ok 13 of 100/hour in 2998s", "gone": "ok | ok 53 of 100/hour in 2998s"} {
		b := newBench(t, holdFile, Options{})
		b.run(t, step{request("user=a," + key + "=,request_id=1"), "ok | ok 60 of 100/hour in 3599s"})
		b.wait(10*time.Minute + time.Second)
		b.run(t,
			step{request("user=a," + key + "=,request_id=1,phase=done x7"), "ok | ok 0"},
			step{request("user=a," + key + "=,request_id=2"), want})
	}
}

// A call that ends a hold on a quota asks for nothing of it, so other quotas decide alone.
func TestEndsAreNoQuotas(t *testing.T) {
	b := newBench(t, `
domain: d
descriptors:
  - {key: held, quota_mode: true, hold: {id: id, end: {phase: done}}, reserve: 40, rate_limit: {unit: hour, requests_per_unit: 100}}
  - {key: plain, quota_mode: true, rate_limit: {unit: hour, requests_per_unit: 1}}
`, Options{})
	b.run(t,
		step{request("held=a,id=1", "plain=a"), "ok | ok 60 of 100/hour in 3599s | ok 0 of 1/hour in 3599s"},
		step{request("held=a,id=2", "plain=a"), "ok | ok 20 of 100/hour in 3599s | over 0 of 1/hour in 3599s"},
		step{request("held=a,id=1,phase=done x7", "plain=a"), "over | ok 0 | over 0 of 1/hour in 3599s"})
}

// With --envoy-count-denied, too, a request that is denied a hold is charged only when it ends.
func TestDeniedHoldsDoNotCount(t *testing.T) {
	newBench(t, holdFile, Options{CountDenied: true}).run(t,
		step{request("user=a,tokens=,request_id=1,phase=done x70"), "ok | ok 0"},
		step{request("user=a,tokens=,request_id=1"), "over | over 0 of 100/hour in 3599s"},
		step{request("user=a,own=,request_id=1 x0"), "ok | ok 100 of 100/hour in 3599s"},
		step{request("user=a,tokens=,request_id=2,phase=done x0"), "ok | ok 0"},
		step{request("user=a,tokens= x0 100/hour"), "over | over 0 of 100/hour in 3599s"})
}

// While the store is unavailable, on_failure decides whether a request may begin. What was used is charged when the store is
// back, once, whichever of the two calls it did not answer.
func TestHoldsWithoutStore(t *testing.T) {
	const file = `
domain: d
descriptors:
  - {key: open, on_failure: open, hold: {id: id, end: {phase: done}}, reserve: 40, rate_limit: {unit: hour, requests_per_unit: 100}}
  - {key: closed, on_failure: closed, hold: {id: id, end: {phase: done}}, reserve: 40, rate_limit: {unit: hour, requests_per_unit: 100}}
  - {key: local, on_failure: local, hold: {id: id, end: {phase: done}}, reserve: 40, rate_limit: {unit: hour, requests_per_unit: 100}}
  - {key: error, on_failure: error, hold: {id: id, end: {phase: done}}, reserve: 40, rate_limit: {unit: hour, requests_per_unit: 100}}
`
	const at = " of 100/hour in 3599s"
	for _, c := range []struct{ key, begins, again, left string }{
		{"open", "ok | ok 0", "ok | ok 0", "49"},
		{"closed", "over | over 0 of 100/hour", "over | over 0 of 100/hour", "49"},
		{"error", "Unavailable", "Unavailable", "49"},
		{"local", "ok | ok 60" + at, "ok | ok 20" + at, "60"}, // which was charged in this process only
	} {
		t.Run(c.key, func(t *testing.T) {
			begin, end := c.key+"=a,id=1", c.key+"=a,id=1,phase=done"
			b := newBench(t, file, Options{})
			b.run(t, step{request(begin), "ok | ok 60" + at}) // begins before, ends while it is unavailable
			b.lost.Store(true)
			b.run(t, step{request(end + " x7"), "ok | ok 0"})
			b.lost.Store(false)
			b.options.Engine.Close()
			b.run(t, step{request(c.key + "=a"), "ok | ok 53" + at})

			b = newBench(t, file, Options{}) // begins twice while it is unavailable, ends when it is back
			b.lost.Store(true)
			b.run(t, step{request(begin), c.begins}, step{request(begin), c.again})
			b.lost.Store(false)
			b.run(t,
				step{request(end + " x4"), "ok | ok 0"},
				step{request(end + " x7"), "ok | ok 0"},
				step{request(c.key + "=a"), "ok | ok " + c.left + at})

			b = newBench(t, file, Options{}) // two ends of one id while it is unavailable, of which one has no hold
			b.run(t, step{request(begin), "ok | ok 60" + at})
			b.lost.Store(true)
			b.run(t, step{request(end + " x4"), "ok | ok 0"}, step{request(end + " x7"), "ok | ok 0"})
			b.lost.Store(false)
			b.options.Engine.Close()
			b.run(t, step{request(c.key + "=a"), "ok | ok 49" + at})
		})
	}
}

// A period of the calendar ends when that of its zone does, whether or not something was used.
func TestCalendarLimits(t *testing.T) {
	b := newBench(t, `
domain: d
descriptors:
  - {key: month, rate_limit: {unit: month, zone: Europe/Berlin, starts: 15, requests_per_unit: 2}}
  - {key: year, rate_limit: {unit: year, zone: UTC, requests_per_unit: 2}}
  - {key: none, rate_limit: {unit: week, zone: UTC, requests_per_unit: 0}}
  - {key: long, rate_limit: {unit: month, requests_per_unit: 2}}
`, Options{}) // on Friday, 2024-10-04
	b.run(t,
		step{request("month=a x0"), "ok | ok 2 of 2/month in 943199s"},
		step{request("month=a"), "ok | ok 1 of 2/month in 943199s"},
		step{request("year=a"), "ok | ok 1 of 2/year in 7689599s"},
		step{request("none=a"), "over | over 0 of 0/week in 259199s"},
		step{request("long=a"), "ok | ok 1 of 2/month in 863999s"})
	b.wait(943199 * time.Second)
	b.run(t, step{request("month=a x2"), "ok | ok 0 of 2/month in 2682000s"}) // 31 days, and an hour more because summer time ends
}
