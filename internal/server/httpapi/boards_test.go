package httpapi

import (
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/fault"
)

func TestBoards(t *testing.T) {
	eachStore(t, func(t *testing.T, k *kept) {
		k.says(t, "POST /v1/boards/score", `{"board":{"name":"b","window":"day"},"score":[{"member":"go"},{"member":"redis","by":2.5},{"member":"lua","by":-1},{"member":"go"}]}`,
			`{"scores":[{"member":"go","score":1},{"member":"redis","score":2.5},{"member":"lua","score":-1},{"member":"go","score":2}]}`)
		k.says(t, "GET /v1/boards/top?board=b&window=day&n=2", "",
			`{"places":[{"rank":1,"member":"redis","score":2.5},{"rank":2,"member":"go","score":2}],"members":3,"dropped":0,"start":"2026-01-01T00:00:00Z"}`)
		k.says(t, "GET /v1/boards/standing?board=b&window=day&member=lua&member=perl", "",
			`{"places":[{"rank":3,"member":"lua","score":-1},{"rank":null,"member":"perl","score":0}]}`)
		k.pass(24 * time.Hour)
		k.says(t, "GET /v1/boards/top?board=b&window=day", "", `{"places":[],"members":0,"dropped":0,"start":"2026-01-02T00:00:00Z"}`)
		k.says(t, "GET /v1/boards/standing?board=b&window=day&ago=1&member=go", "", `{"places":[{"rank":2,"member":"go","score":2}]}`)

		k.says(t, "POST /v1/boards/score", `{"board":{"name":"b","sliding_s":60},"score":[{"member":"go"}]}`, `{"scores":[{"member":"go","score":1}]}`)
		k.says(t, "GET /v1/boards/top?board=b&sliding_s=60", "", `{"places":[{"rank":1,"member":"go","score":1}],"members":1,"dropped":0}`)
		k.pass(63 * time.Second)
		k.says(t, "GET /v1/boards/top?board=b&sliding_s=60", "", `{"places":[],"members":0,"dropped":0}`)
	})
}

func TestBoardProblems(t *testing.T) {
	k := keptInMemory(t, Options{})
	long := strings.Repeat("x", counter.MaxNameLen+1)
	const score, top, standing = "POST /v1/boards/score", "GET /v1/boards/top", "GET /v1/boards/standing"
	for _, c := range []struct{ what, body, field, words string }{
		{score, `{"score":[{"member":"m"}]}`, "board.name", "it is empty"},
		{score, `{"board":"b","score":[{"member":"m"}]}`, "board", "send an object"},
		{score, `{"board":{"name":"` + long + `"},"score":[{"member":"m"}]}`, "board.name", "256"},
		{score, `{"board":{"name":"b","zone":"x"},"score":[{"member":"m"}]}`, "board.zone", "Asia/Shanghai"},
		{score, `{"board":{"name":"b","ago":1},"score":[{"member":"m"}]}`, "ago", "no field"},
		{score, `{"board":{"name":"b","sliding_s":-1},"score":[{"member":"m"}]}`, "board.sliding_s", "from 1 to 31622400"},
		{score, `{"board":{"name":"b","sliding_s":9223372036854775807},"score":[{"member":"m"}]}`, "board.sliding_s", "from 1 to 31622400"},
		{score, `{"board":{"name":"b","sliding_s":60,"window":"day"},"score":[{"member":"m"}]}`, "board.sliding_s", "leave them out"},
		{score, `{"board":{"name":"b","sliding_s":60},"score":[{"member":"m","by":-1}]}`, "score[0].by", "only grow"},
		{score, `{"board":{"name":"b"},"score":[]}`, "score", "required"},
		{score, `{"board":{"name":"b"},"score":[{"member":"m"},{"by":1}]}`, "score[1].member", "it is empty"},
		{score, `{"board":{"name":"b"},"score":[{"member":"m","by":9007199255}]}`, "score[0].by", "is too large"},
		{score, `{"board":{"name":"b"},"score":[` + strings.Repeat(`{"member":"m"},`, counter.MaxBatch) + `{"member":"m"}]}`, "score", "256"},
		{top, "", "board", "it is empty"},
		{top + "?board=b&n=1001", "", "n", "to 1000"},
		{top + "?board=b&window=day&ago=8", "", "ago", "to 7"},
		{top + "?board=b&ago=1", "", "ago", "no earlier one"},
		{top + "?board=b&sliding_s=0", "", "sliding_s", "from 1"},
		{top + "?board=b&sliding_s=60&zone=UTC", "", "sliding_s", "leave them out"},
		{top + "?board=b&sliding_s=60&ago=1", "", "sliding_s", "leave them out"},
		{top + "?board=b&member=m", "", "member", "no parameter"},
		{top + "?board=b&zone=x", "", "zone", "Asia/Shanghai"},
		{top + "?board=%ff", "", "board", "UTF-8"},
		{standing + "?board=b", "", "member", "required"},
		{standing + "?board=b&member=", "", "member", "it is empty"},
		{standing + "?board=b&member=m&n=1", "", "n", "no parameter"},
		{standing + "?board=b&member=" + long, "", "member", "256"},
	} {
		p := k.call(c.what, c.body).wantProblem(t, fault.BadField, c.words)
		if p.Field != c.field || strings.Contains(p.Detail, "weir:") {
			t.Errorf("%s %s: %q in %q", c.what, c.body, p.Detail, p.Field)
		}
	}
}
