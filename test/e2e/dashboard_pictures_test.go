package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

const pictureRules = `rules:
  - {id: login, description: stop password guessing, match: {method: POST, path: /api/login}, key: ip, algorithm: sliding_log, limit: 5/1h}
  - {id: api, match: {path: /api/**}, key: user, limit: 40/1s}
  - {id: search, match: {path: /api/search}, key: user, limit: 12/1s, mode: shadow}
  - {id: everything, key: global, limit: 1000/1s}
`

// The pictures in the documentation are of the real page; -update takes them again, with
// a minute of traffic on them instead of a moment.
func TestDashboardPictures(t *testing.T) {
	p, b, _ := dashboard(t, pictureRules, "--queue", "mail=1/1h,capacity=10", "--queue", "thumbnails=50/1s")
	c := client(t)
	post := func(path, body string) {
		t.Helper()
		if a := ask(t, c, "POST", p.URL+path, body); a.Status/100 != 2 {
			t.Fatalf("%s: %s", path, a.Text)
		}
	}
	for range 7 {
		post("/v1/check", `{"ip": "192.0.2.1", "method": "POST", "path": "/api/login"}`)
	}
	post("/v1/counters/add", `{"add": [{"name": "views", "by": 48210}, {"name": "likes", "by": 1207}, {"name": "shares", "by": 96}]}`)
	post("/v1/boards/score", `{"board": {"name": "songs"}, "score": [{"member": "Blue Hour", "by": 812}, {"member": "Long Way Down", "by": 640}, {"member": "Paper Boats", "by": 377}]}`)
	post("/v1/hot/hit", `{"list": {"name": "goods", "window_s": 3600, "threshold": 2}, "items": ["lamp", "chair"]}`)
	post("/v1/hot/hit", `{"list": {"name": "goods", "window_s": 3600, "threshold": 2}, "items": ["lamp"]}`)
	for range 4 {
		post("/v1/queues/mail/push", `{"payload": "hello"}`)
	}
	seconds := 4
	if *update {
		seconds = 45
	}
	from := time.Now().Unix()
	waves(t, p.URL)
	var to int64
	recorded := func(least int) func() bool {
		return func() (enough bool) {
			var n int
			n, to = onRecord(t, p.URL, from)
			return n > least
		}
	}
	waitFor(t, "half of the traffic", recorded(seconds/2))
	const raised = `{id: everything, key: global, limit: 2000/1s}`
	if a := ask(t, c, "PUT", p.URL+"/v1/rules/everything?summary=more+for+everybody", raised, "If-Match", "*"); a.Status != 200 {
		t.Fatal(a.Text)
	}
	waitFor(t, "the traffic", recorded(seconds))

	document, err := os.ReadFile("../../docs/guides/dashboard.md")
	if err != nil {
		t.Fatal(err)
	}
	page := b.open(p.URL, "")
	page.look(1200, 1000, "light")
	page.front()
	page.press(id("range-other"))
	const clock = "new Date(%d * 1000 - new Date().getTimezoneOffset() * 60000).toISOString().slice(0, 19)"
	for field, at := range map[string]int64{"range-from": from + 1, "range-to": to} {
		var text string
		if err := page.eval(fmt.Sprintf(clock, at), &text); err != nil {
			t.Fatal(err)
		}
		page.setTime(id(field), text)
	}
	page.press(id("range-show"))
	page.press(id("range-other")) // the fields are in the way
	waitFor(t, "a rate", func() bool { return page.number(id("tile-rate")+" .value") > 10 })
	for _, p := range []struct{ name, place, ready, says string }{
		{"dashboard-overview", "", id("marks"), "more for everybody"},
		{"dashboard-playground", "playground", id("numbers"), "leaky_bucket shape"},
		{"dashboard-rule", "rules/edit/login", id("checked"), "No errors."},
		{"dashboard-client", "clients?key=ip:192.0.2.1", id("standing"), "0 / 5"},
		{"dashboard-counters", "counters?name=views&name=likes&name=shares&board=songs&hot=goods&hot_window_s=3600&hot_threshold=2", "tr[data-item=lamp]", "hot"},
	} {
		if p.place != "" {
			page.run("go", chromedp.Evaluate("location.hash = "+literal("#/"+p.place), nil))
		}
		page.see(p.ready, p.says)
		if !strings.Contains(string(document), "(../images/"+p.name+".png)") {
			t.Errorf("docs/guides/dashboard.md does not show %s", p.name)
		}
		var shot []byte
		page.run("take a picture", picture(&shot))
		if size, err := pngSize(shot); err != nil || size != image.Pt(1200, 1000) {
			t.Errorf("%s: the picture is %v, %v", p.name, size, err)
		}
		if *update {
			if err := os.WriteFile("../../docs/images/"+p.name+".png", shot, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// waves sends requests that come and go, until the test ends.
func waves(t *testing.T, url string) {
	t.Helper()
	c := client(t)
	users, paths := []string{"alice", "bob", "carol", "dave"}, []string{"/api/items", "/api/search", "/api/orders"}
	stop, done := make(chan struct{}), make(chan struct{})
	tick := time.NewTicker(20 * time.Millisecond)
	go func() {
		defer close(done)
		defer tick.Stop()
		begin := time.Now()
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			for i := range int(3.5 + 2.4*math.Sin(time.Since(begin).Seconds()/6)) {
				try(c, "POST", url+"/v1/check", fmt.Sprintf(`{"user": %q, "path": %q}`, users[(n+i)%len(users)], paths[i%len(paths)]))
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-done })
}

// onRecord is in how many seconds there were requests, and when the last one was.
func onRecord(t *testing.T, url string, from int64) (seconds int, last int64) {
	t.Helper()
	var series struct {
		Points []struct{ T, Requests int64 }
	}
	answer := ask(t, client(t), "GET", fmt.Sprintf("%s/v1/stats/series?from=%d&step=1", url, from), "")
	if err := json.Unmarshal([]byte(answer.Text), &series); err != nil {
		t.Fatalf("%v in %s", err, answer.Text)
	}
	for _, point := range series.Points {
		if point.Requests > 0 {
			seconds++
			last = point.T
		}
	}
	return seconds, last
}

func pngSize(data []byte) (image.Point, error) {
	config, err := png.DecodeConfig(bytes.NewReader(data))
	return image.Pt(config.Width, config.Height), err
}
