package httpapi

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
)

func TestStatsProblems(t *testing.T) {
	s := newStatsStand(t, Options{})
	long := strings.Repeat("x", manage.MaxWord+1)
	type wrong struct{ query, field, words string }
	whens := []wrong{
		{"from=-1", "from", "not a time since 1970"}, {"to=-9223372036854775808", "to", "not a time since 1970"},
		{"from=NaN", "from", "not a time"}, {"from=Inf", "from", "not a time"}, {"to=1e99", "to", "not a time"},
		{"from=9223372036854775807", "from", "not a time"}, {"to=99999999999999999999999", "to", "not a time"},
		{"from=1767225600.x", "from", "not a time"}, {"from=0x10", "from", "not a time"}, {"to=yesterday", "to", "not a time"},
		{"from=1969-12-31T23:59:59Z", "from", "not a time"}, {"from=2026-13-01T00:00:00Z", "from", "not a time"},
		{"from=5&to=4", "to", "ends before it begins"}, {"from=5&to=5", "to", "ends before it begins"},
		{"from=5.1&to=5.9", "to", "ends before it begins"}, {"from=253402300799", "to", "ends before it begins"},
		{"from=0", "from", "ten years"}, {"from=0&to=253402300799", "from", "ten years"},
		{"from=1&from=2", "from", "2 times"}, {"frm=1", "frm", "did you mean from?"},
		{"to=" + long, "to", "not a time"},
	}
	all := map[string][]wrong{
		"summary": {{"rule=api", "rule", "no parameter"}, {"window=60", "window", "no parameter"}},
		"series": {
			{"step=-1", "step", "not a duration"}, {"step=NaN", "step", "not a duration"}, {"step=1x", "step", "not a duration"},
			{"step=99999999999999999999", "step", "not a duration"}, {"step=9999999999", "step", "not a duration"}, {"step=-10s", "step", "not a duration"},
			{"tier=pro", "tier", "also send rule"}, {"rule=" + long, "rule", "1025 bytes"}, {"rule=api&tier=" + long, "tier", "1025 bytes"},
			{fmt.Sprintf("from=%d&to=%d&step=60", begin.Unix()+30, begin.Unix()+300_030), "step", "5001 points are too many"},
		},
		"suggest": {
			{"from=1", "rule", "required"}, {"rule=", "rule", "required"}, {"rule=" + long, "rule", "1025 bytes"},
			{"rule=api&share=1", "share", "not a share"}, {"rule=api&share=NaN", "share", "not a share"}, {"rule=api&share=-0.1", "share", "not a share"},
			{"rule=api&share=0.1,,0.2", "share", "not a share"}, {"rule=api&share=" + strings.Repeat("0,", 10) + "0", "share", "maximum of 10"},
		},
		"top": {
			{"by=most", "by", "total, allowed or denied"}, {"window=60", "window", "minute, hour or day"}, {"by=" + strings.Repeat("y", 5000), "by", "by: "},
			{"n=0", "n", "1 to 256"}, {"n=-1", "n", "1 to 256"}, {"n=257", "n", "1 to 256"}, {"n=99999999999999999999", "n", "1 to 256"}, {"n=ten", "n", "1 to 256"},
			{"rule=" + long, "rule", "1025 bytes"}, {"from=1", "from", "no parameter"},
		},
		"rules": {
			{"by=most", "by", "total, allowed, denied, shadow_denied or soft_denied"}, {"n=0", "n", "1 to 50"}, {"n=51", "n", "1 to 50"}, {"n=x", "n", "1 to 50"},
			{"step=-1", "step", "not a duration"}, {fmt.Sprintf("from=%d&to=%d&step=60", begin.Unix(), begin.Unix()+60_060), "step", "1001 points are too many"},
		},
		"clients": {
			{"by=shadow_denied", "by", "total, allowed or denied"}, {"n=0", "n", "1 to 100"}, {"n=101", "n", "1 to 100"},
			{"rule=" + long, "rule", "1025 bytes"}, {"prefix=" + long, "prefix", "1025 bytes"}, {"step=1", "step", "no parameter"},
		},
		"client":  {{"from=1", "key", "required"}, {"key=", "key", "required"}, {"key=" + long, "key", "1025 bytes"}},
		"denials": {{"n=0", "n", "1 to 100"}, {"n=101", "n", "1 to 100"}, {"key=" + long, "key", "1025 bytes"}, {"rule=" + long, "rule", "1025 bytes"}, {"from=1", "from", "no parameter"}},
		"usage":   {{"from=1", "rule", "required"}, {"rule=" + long, "rule", "1025 bytes"}},
		"stream":  {{"from=1", "from", "no parameter"}},
	}
	for _, w := range whens {
		all["summary"] = append(all["summary"], w)
		all["series"] = append(all["series"], w)
		all["rules"] = append(all["rules"], w)
		all["clients"] = append(all["clients"], w)
		all["client"] = append(all["client"], wrong{"key=a&" + w.query, w.field, w.words})
		all["usage"] = append(all["usage"], wrong{"rule=api&" + w.query, w.field, w.words})
		all["suggest"] = append(all["suggest"], wrong{"rule=api&" + w.query, w.field, w.words})
	}
	for what, wrongs := range all {
		for _, w := range wrongs {
			p := s.call("GET /v1/stats/"+what+"?"+w.query, "").wantProblem(t, fault.BadField, w.words)
			if p.Field != w.field || strings.Contains(p.Detail, "stats:") {
				t.Errorf("%s?%s: %q in %q", what, w.query, p.Detail, p.Field)
			}
		}
	}
}

// However long the time and short the step, a series has a bounded number of points.
func TestStretches(t *testing.T) {
	s := newStatsStand(t, Options{})
	now := begin.Unix()
	for _, c := range []struct {
		from, to int64
		step     string
		length   int64
		points   int
	}{
		{now - 366*86400, now, "1", 86400, 366},
		{now - 366*86400, now, "", 86400, 366},
		{now - 3659*86400, now, "", 30 * 86400, 122},
		{now - 86400, now, "", 300, 288},
		{now - 3600, now, "1s", 1, 3600},
		{now - 3600, now, "1500ms", 2, 1800},
		{now - 60, now, "3660d", 3660 * 86400, 1},
		{now + 100, now + 200, "", 1, 100},
		{now - 1, now, "", 1, 1},
	} {
		var a SeriesAnswer
		s.call(fmt.Sprintf("GET /v1/stats/series?from=%d&to=%d&step=%s", c.from, c.to, c.step), "").want(t, 200, &a)
		if a.Step != c.length || len(a.Points) < c.points || len(a.Points) > c.points+1 {
			t.Errorf("%+v: %d points of %d s", c, len(a.Points), a.Step)
		}
	}
	// A plus that was not escaped is meant as one.
	from, p := instant("from", "2026-01-01T02:00:00 02:00")
	if p != nil || from.Unix() != now {
		t.Errorf("%v %v", from, p)
	}
}

// Whatever is asked is answered, or rejected with a reason.
func FuzzStats(f *testing.F) {
	for _, seed := range [][2]string{
		{"summary", "from=1&to=2"}, {"series", "step=1&rule=api&tier=x"}, {"series", "from=2026-01-01T00:00:00Z&step=1w"},
		{"top", "by=total&window=day&n=256"}, {"suggest", "rule=api&share=0.1,0.2&from=1.5"}, {"stream", ""},
	} {
		f.Add(seed[0], seed[1])
	}
	o := Options{Service: manage.Service{Limits: manage.GuardOptions{Calls: weir.Limit{N: 1_000_000_000, Period: time.Second}}}}
	withStats(f, &o)
	s := newStand(f, o)
	f.Fuzz(func(t *testing.T, what, query string) {
		what, _, _ = strings.Cut(what, "?")
		u := url.URL{Path: "/v1/stats/" + strings.TrimLeft(what, "/"), RawQuery: query}
		if _, err := url.ParseRequestURI(u.RequestURI()); err != nil || strings.ContainsAny(u.RequestURI(), " \x7f") {
			return
		}
		r := direct(s, "GET", u.RequestURI(), "")
		if r.StatusCode != 200 && r.StatusCode != 400 && r.StatusCode != 404 || len(r.body) > 2<<20 {
			t.Errorf("%s: %d, %d bytes: %.200s", u.String(), r.StatusCode, len(r.body), r.body)
		}
	})
}
