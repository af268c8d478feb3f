package httpapi

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir/counter"
)

// The HTTP API can do what applications often do with Redis commands.
func TestRecipes(t *testing.T) {
	for name, test := range map[string]func(*testing.T, *kept){
		"IncrCommands":      recipeIncr,
		"PageViews":         recipeVisits,
		"Likes":             recipeLikes,
		"Reset":             recipeReset,
		"HotProducts":       recipeHotProducts,
		"SearchLeaderboard": recipeHotSearches,
		"UserActions":       recipeBehaviour,
	} {
		t.Run(name, func(t *testing.T) { eachStore(t, test) })
	}
}

// INCR, INCRBY, INCRBYFLOAT and DECRBY.
func recipeIncr(t *testing.T, k *kept) {
	for _, c := range []struct{ name, by, want string }{
		{"page_views", "1", "1"}, {"score", "10", "10"}, {"score", "15", "25"},
		{"temperature", "0.5", "0.5"}, {"temperature", "1.2", "1.7"}, {"remaining", "100", "100"}, {"remaining", "-10", "90"},
	} {
		k.says(t, "POST /v1/counters/add", fmt.Sprintf(`{"add":[{"name":%q,"by":%s}]}`, c.name, c.by),
			fmt.Sprintf(`{"counters":[{"name":%q,"value":%s}]}`, c.name, c.want))
	}
}

// Views in all, by the day, by the hour, of a page and of a user, in one call.
func recipeVisits(t *testing.T, k *kept) {
	const view = `{"add":[{"name":"views"},{"name":"views","window":"day","zone":"Asia/Shanghai"},{"name":"views","window":"hour","zone":"Asia/Shanghai"},` +
		`{"name":"page:/home"},{"name":"user:1001","window":"day","zone":"Asia/Shanghai"}]}`
	values := func(want ...string) string {
		return fmt.Sprintf(`{"counters":[{"name":"views","value":%s},{"name":"views","window":"day","zone":"Asia/Shanghai","value":%s},{"name":"views","window":"hour","zone":"Asia/Shanghai","value":%s},`+
			`{"name":"page:/home","value":%s},{"name":"user:1001","window":"day","zone":"Asia/Shanghai","value":%s}]}`, want[0], want[1], want[2], want[3], want[4])
	}
	k.at(time.Date(2025, 8, 29, 7, 30, 0, 0, time.UTC)) // half past three in Shanghai
	k.says(t, "POST /v1/counters/add", view, values("1", "1", "1", "1", "1"))
	k.says(t, "POST /v1/counters/add", view, values("2", "2", "2", "2", "2"))
	k.pass(time.Hour)
	k.says(t, "POST /v1/counters/add", view, values("3", "3", "1", "3", "3"))
	k.pass(8 * time.Hour) // is another day there
	k.says(t, "POST /v1/counters/add", view, values("4", "1", "1", "4", "1"))
	k.says(t, "GET /v1/counters/history?name=views&name=user:1001&window=day&zone=Asia/Shanghai&n=2", "",
		`{"counters":[{"name":"views","window":"day","zone":"Asia/Shanghai","points":[{"start":"2025-08-29T00:00:00+08:00","value":3},{"start":"2025-08-30T00:00:00+08:00","value":1}]},`+
			`{"name":"user:1001","window":"day","zone":"Asia/Shanghai","points":[{"start":"2025-08-29T00:00:00+08:00","value":3},{"start":"2025-08-30T00:00:00+08:00","value":1}]}]}`)
	k.says(t, "GET /v1/counters?name=views&name=page:/home&name=page:/none", "",
		`{"counters":[{"name":"views","value":4},{"name":"page:/home","value":4},{"name":"page:/none","value":0}]}`)
}

// Likes of a user today, and one that was taken back.
func recipeLikes(t *testing.T, k *kept) {
	for range 15 {
		k.call("POST /v1/actions", `{"user":"1001","actions":["like"]}`).want(t, 200, nil)
	}
	k.says(t, "POST /v1/actions", `{"user":"1001","actions":["comment"]}`, `{"user":"1001","actions":[{"action":"comment","hour":1,"day":1}]}`)
	k.says(t, "GET /v1/actions?user=1001&action=like&action=comment&action=download", "",
		`{"user":"1001","actions":[{"action":"like","hour":15,"day":15},{"action":"comment","hour":1,"day":1},{"action":"download","hour":0,"day":0}]}`)
	k.says(t, "POST /v1/counters/add", `{"add":[{"name":"likes:article:7"}]}`, `{"counters":[{"name":"likes:article:7","value":1}]}`)
	k.says(t, "POST /v1/counters/add", `{"add":[{"name":"likes:article:7","by":-1}]}`, `{"counters":[{"name":"likes:article:7","value":0}]}`)
}

// GETSET counter 0, and counters that begin again by themselves.
func recipeReset(t *testing.T, k *kept) {
	k.call("POST /v1/counters/add", `{"add":[{"name":"sales","by":1999.99},{"name":"sales","window":"day","by":7}]}`).want(t, 200, nil)
	k.says(t, "POST /v1/counters/reset", `{"reset":[{"name":"sales"}]}`, `{"counters":[{"name":"sales","value":1999.99}]}`)
	k.says(t, "POST /v1/counters/reset", `{"reset":[{"name":"sales"}]}`, `{"counters":[{"name":"sales","value":0}]}`)
	k.says(t, "GET /v1/counters?name=sales&window=day", "", `{"counters":[{"name":"sales","window":"day","value":7}]}`)
	k.pass(24 * time.Hour)
	k.says(t, "GET /v1/counters?name=sales&window=day", "", `{"counters":[{"name":"sales","window":"day","value":0}]}`)
}

// An hour's accesses, against a threshold; exactly one is told that it turned hot.
func recipeHotProducts(t *testing.T, k *kept) {
	const list, asked = `"list":{"name":"products","window_s":3600,"threshold":100}`, "list=products&window_s=3600&threshold=100"
	turned := 0
	for n := range 120 {
		var a HeatAnswer
		k.call("POST /v1/hot/hit", `{`+list+`,"items":["10001"]}`).want(t, 200, &a)
		if heat := a.Items[0]; heat.Hits != int64(n+1) || heat.Hot != (n+1 >= 100) {
			t.Fatalf("after %d hits: %+v", n+1, heat)
		}
		if a.Items[0].Turned {
			turned++
		}
	}
	if turned != 1 {
		t.Errorf("%d were told", turned)
	}
	k.call("POST /v1/hot/hit", `{`+list+`,"items":["10002"]}`).want(t, 200, nil)
	k.says(t, "GET /v1/hot?"+asked, "", `{"items":[{"item":"10001","hits":120,"hot":true,"since":"2026-01-01T00:00:00.5Z"}]}`)
	k.pass(64 * time.Minute)
	k.says(t, "GET /v1/hot?"+asked, "", `{"items":[]}`)
	var news counter.Events
	k.call("GET /v1/hot/events?"+asked, "").want(t, 200, &news)
	if len(news.Events) != 2 || !news.Events[0].Hot || news.Events[1].Hot {
		t.Errorf("%+v", news)
	}
}

// Today's searches: the first ten, and where one stands.
func recipeHotSearches(t *testing.T, k *kept) {
	k.at(time.Date(2025, 8, 29, 7, 30, 0, 0, time.UTC))
	k.call("POST /v1/boards/score", `{"board":{"name":"searches","window":"day","zone":"Asia/Shanghai"},"score":[{"member":"JavaScript基础","by":98},{"member":"Redis教程","by":155},{"member":"Python爬虫","by":142}]}`).want(t, 200, nil)
	k.says(t, "POST /v1/boards/score", `{"board":{"name":"searches","window":"day","zone":"Asia/Shanghai"},"score":[{"member":"Redis教程"}]}`, `{"scores":[{"member":"Redis教程","score":156}]}`)
	const top = `{"places":[{"rank":1,"member":"Redis教程","score":156},{"rank":2,"member":"Python爬虫","score":142},{"rank":3,"member":"JavaScript基础","score":98}],"members":3,"dropped":0,"start":"2025-08-29T00:00:00+08:00"}`
	k.says(t, "GET /v1/boards/top?board=searches&window=day&zone=Asia/Shanghai&n=10", "", top)
	k.says(t, "GET /v1/boards/standing?board=searches&window=day&zone=Asia/Shanghai&member=JavaScript%E5%9F%BA%E7%A1%80", "", `{"places":[{"rank":3,"member":"JavaScript基础","score":98}]}`)
	k.pass(9 * time.Hour)
	k.says(t, "GET /v1/boards/top?board=searches&window=day&zone=Asia/Shanghai", "", `{"places":[],"members":0,"dropped":0,"start":"2025-08-30T00:00:00+08:00"}`)
	k.says(t, "GET /v1/boards/top?board=searches&window=day&zone=Asia/Shanghai&ago=1", "", top)
}

// What a user did in each of the last hours.
func recipeBehaviour(t *testing.T, k *kept) {
	for action, n := range map[string]int{"like": 5, "comment": 2} {
		for range n {
			k.call("POST /v1/actions", fmt.Sprintf(`{"user":"1001","actions":[%q]}`, action)).want(t, 200, nil)
		}
	}
	k.pass(time.Hour)
	k.call("POST /v1/actions", `{"user":"1001","actions":["like"]}`).want(t, 200, nil)
	var a ActionHistoryAnswer
	k.call("GET /v1/actions/history?user=1001&action=like&action=comment&action=share&window=hour&n=24", "").want(t, 200, &a)
	for i, want := range [][2]int64{{5, 1}, {2, 0}, {0, 0}} {
		points := a.Actions[i].Points
		if len(points) != 24 || points[22].Amount.Round() != want[0] || points[23].Amount.Round() != want[1] || !points[23].Start.Equal(begin.Truncate(time.Hour).Add(time.Hour)) {
			t.Errorf("%s: %+v", a.Actions[i].Action, points)
		}
	}
}
