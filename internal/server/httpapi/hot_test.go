package httpapi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/fault"
)

func TestHot(t *testing.T) {
	eachStore(t, func(t *testing.T, k *kept) {
		const list, asked = `"list":{"name":"l","window_s":60,"threshold":3,"cool":2}`, "list=l&window_s=60&threshold=3&cool=2"
		k.says(t, "GET /v1/hot?"+asked, "", `{"items":[]}`)
		k.says(t, "GET /v1/hot/events?"+asked, "", `{"events":[],"next":0,"missed":false}`)
		k.says(t, "POST /v1/hot/hit", `{`+list+`,"items":["a","b","a"]}`,
			`{"items":[{"item":"a","hits":2,"hot":false},{"item":"b","hits":1,"hot":false},{"item":"a","hits":2,"hot":false}]}`)
		k.says(t, "POST /v1/hot/hit", `{`+list+`,"items":["a"]}`, `{"items":[{"item":"a","hits":3,"hot":true,"since":"2026-01-01T00:00:00.5Z","turned":true}]}`)
		k.says(t, "POST /v1/hot/hit", `{`+list+`,"items":["a"]}`, `{"items":[{"item":"a","hits":4,"hot":true,"since":"2026-01-01T00:00:00.5Z"}]}`)
		k.says(t, "GET /v1/hot?"+asked+"&n=1", "", `{"items":[{"item":"a","hits":4,"hot":true,"since":"2026-01-01T00:00:00.5Z"}]}`)
		var news counter.Events
		k.call("GET /v1/hot/events?"+asked, "").want(t, 200, &news)
		if len(news.Events) != 1 || !news.Events[0].Hot || news.Events[0].Item != "a" || news.Events[0].Hits != 3 || !news.Events[0].At.Equal(begin) || news.Next != news.Events[0].ID || news.Missed {
			t.Fatalf("%+v", news)
		}
		k.says(t, "GET /v1/hot/events?"+asked+"&after=latest", "", fmt.Sprintf(`{"events":[],"next":%d,"missed":false}`, news.Next))
		k.pass(63 * time.Second)
		k.says(t, "GET /v1/hot?"+asked, "", `{"items":[]}`)
		first := news.Next
		news = counter.Events{}
		k.call(fmt.Sprintf("GET /v1/hot/events?%s&after=%d", asked, first), "").want(t, 200, &news)
		if len(news.Events) != 1 || news.Events[0].Hot || news.Events[0].Item != "a" || news.Events[0].ID <= first {
			t.Errorf("%+v", news)
		}
	})
}

func TestHotProblems(t *testing.T) {
	k := keptInMemory(t, Options{})
	const hit, good = "POST /v1/hot/hit", "list=l&window_s=60&threshold=3"
	for _, c := range []struct{ what, body, field, words string }{
		{hit, `{"items":["a"]}`, "list.window_s", "from 1 to 31622400"},
		{hit, `{"list":{"name":"","window_s":1,"threshold":1},"items":["a"]}`, "list.name", "it is empty"},
		{hit, `{"list":{"name":"l","window_s":9223372036854775807,"threshold":1},"items":["a"]}`, "list.window_s", "from 1 to 31622400"},
		{hit, `{"list":{"name":"l","window_s":1.5,"threshold":1},"items":["a"]}`, "list.window_s", "whole number"},
		{hit, `{"list":{"name":"l","window_s":1},"items":["a"]}`, "list.threshold", "1 or more"},
		{hit, `{"list":{"name":"l","window_s":1,"threshold":2,"cool":3},"items":["a"]}`, "list.cool", "write 1 to 2"},
		{hit, `{"list":{"name":"l","window_s":1,"threshold":1},"items":[]}`, "items", "required"},
		{hit, `{"list":{"name":"l","window_s":1,"threshold":1},"items":["a",""]}`, "items[1]", "it is empty"},
		{hit, `{"list":{"name":"l","window_s":1,"threshold":1},"items":[` + strings.Repeat(`"a",`, counter.MaxBatch) + `"a"]}`, "items", "maximum of 256"},
		{hit, `{"list":{"name":"l","windows":1,"threshold":1},"items":["a"]}`, "windows", "did you mean window_s?"},
		{"GET /v1/hot", "", "window_s", "from 1"},
		{"GET /v1/hot?window_s=60&threshold=3", "", "list", "it is empty"},
		{"GET /v1/hot?" + good + "&n=0", "", "n", "from 1"},
		{"GET /v1/hot?" + good + "&cool=4", "", "cool", "write 1 to 3"},
		{"GET /v1/hot?list=l&window_s=60&threshold=0", "", "threshold", "from 1"},
		{"GET /v1/hot?" + good + "&after=1", "", "after", "no parameter"},
		{"GET /v1/hot/events?" + good + "&after=-1", "", "after", "from 0"},
		{"GET /v1/hot/events?" + good + "&after=last", "", "after", "whole number"},
		{"GET /v1/hot/events?" + good + "&n=1", "", "n", "no parameter"},
	} {
		p := k.call(c.what, c.body).wantProblem(t, fault.BadField, c.words)
		if p.Field != c.field || strings.Contains(p.Detail, "weir:") {
			t.Errorf("%s %s: %q in %q", c.what, c.body, p.Detail, p.Field)
		}
	}
}
