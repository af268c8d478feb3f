package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// The pictures in the documentation are of the real page; -update takes them again, with
// a minute of traffic on them instead of a moment, and takes one of every page, by day, by
// night and on a phone, for who wants to look at all of them.
func TestDashboardPictures(t *testing.T) {
	seconds := 4
	if *update {
		seconds = 45
	}
	p, b, places := furnished(t, seconds)
	document, err := os.ReadFile("../../docs/guides/dashboard.md")
	if err != nil {
		t.Fatal(err)
	}
	page := b.open(p.URL, "")
	page.look(1200, 1000, "light")
	for _, to := range places {
		if to.image == "" {
			continue
		}
		page.visit(to)
		page.settle()
		if !strings.Contains(string(document), "(../images/"+to.image+".png)") {
			t.Errorf("docs/guides/dashboard.md does not show %s", to.image)
		}
		var shot []byte
		page.run("take a picture", picture(&shot))
		if size, err := pngSize(shot); err != nil || size != image.Pt(1200, 1000) {
			t.Errorf("%s: the picture is %v, %v", to.image, size, err)
		}
		if *update {
			keepPicture(t, "../../docs/images", to.image, shot)
		}
	}
	if !*update {
		return
	}
	asked := b.open(withTokens(t).URL, "#/rules")
	asked.waitFor("dialog " + id("token"))
	asked.album("token")
	page.front()
	for _, to := range places {
		page.visit(to)
		page.album(to.name)
	}
}

// album takes pictures of the whole page in every look. They are for people to look at, and
// do not belong to git.
func (p *tab) album(name string) {
	p.t.Helper()
	for _, look := range []struct {
		name   string
		width  int64
		scheme string
	}{{"light", 1200, "light"}, {"dark", 1200, "dark"}, {"phone", 390, "light"}, {"phone-dark", 390, "dark"}} {
		p.look(look.width, 1000, look.scheme)
		p.settle()
		var shot []byte
		p.run("take a picture", cdppage.BringToFront(), chromedp.FullScreenshot(&shot, 100))
		keepPicture(p.t, "../../bin/pictures", name+"-"+look.name, shot)
	}
}

func keepPicture(t *testing.T, dir, name string, shot []byte) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, name+".png")
	if err := os.WriteFile(file, shot, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Log(file)
}

// traffic sends waves of requests until the test ends, and waits for so many seconds of them,
// and until the rules api and search have denied some. In the middle, something happens. It
// returns the first and the last second.
func traffic(t *testing.T, url string, seconds int, middle func()) (from, to int64) {
	t.Helper()
	c := client(t)
	from = time.Now().Unix()
	waves(t, url)
	recorded := func(least int) func() bool {
		return func() bool {
			var n int
			n, to = onRecord(t, url, from)
			return n > least
		}
	}
	waitFor(t, "half of the traffic", recorded(seconds/2))
	middle()
	for rule, request := range map[string]string{
		"api":    `{"user": "alice", "path": "/api/items", "cost": 30}`,
		"search": `{"user": "bob", "path": "/api/search", "cost": 8}`,
	} {
		waitFor(t, "denials of "+rule, func() bool {
			if strings.Contains(ask(t, c, "GET", url+"/v1/stats/clients?by=denied&rule="+rule, "").Text, `"user:`) {
				return true
			}
			for range 2 { // a busy machine may send too few in any second
				try(c, "POST", url+"/v1/check", request)
			}
			return false
		})
	}
	denied := time.Now().Unix() // or before; the range that is returned has them
	waitFor(t, "the traffic", func() bool { return recorded(seconds)() && to > denied })
	return from, to
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
