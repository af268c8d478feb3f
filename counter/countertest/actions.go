package countertest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
)

// A user's actions are counted by the hour and by the day of a zone.
func testActions(t *testing.T, open Open) {
	b := newTable(t, open, Settings{})
	actions := counter.Actions{Store: b.Store, Zone: zone(t, "Asia/Shanghai")}
	record := func(user string, names ...string) []counter.Tally {
		t.Helper()
		got, err := actions.Record(t.Context(), user, names...)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	b.equal("Record", record("1001", "like", "share", "like"), []counter.Tally{{Action: "like", Hour: 1, Day: 1}, {Action: "share", Hour: 1, Day: 1}, {Action: "like", Hour: 2, Day: 2}})
	b.pass(time.Hour)
	b.equal("Record", record("1001", "like"), []counter.Tally{{Action: "like", Hour: 1, Day: 3}})
	b.equal("Record", record("1002", "like"), []counter.Tally{{Action: "like", Hour: 1, Day: 1}})
	b.pass(3 * time.Hour) // midnight in Shanghai
	b.equal("Record", record("1001", "like"), []counter.Tally{{Action: "like", Hour: 1, Day: 1}})
	got, err := actions.Read(t.Context(), "1001", "share", "like", "never")
	if err != nil {
		t.Fatal(err)
	}
	b.equal("Read", got, []counter.Tally{{Action: "share", Hour: 0, Day: 0}, {Action: "like", Hour: 1, Day: 1}, {Action: "never", Hour: 0, Day: 0}})
	tracks, err := actions.History(t.Context(), "1001", counter.Day, 3, "like", "share")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"0 3 1", "0 1 0"} {
		p := tracks[i].Points
		if got := fmt.Sprint(p[0].Amount, p[1].Amount, p[2].Amount); got != want || !p[2].Start.Equal(b.now) {
			t.Errorf("%s: %s since %v", tracks[i].Action, got, p[2].Start)
		}
	}
	b.get([]string{"1"}, counter.Key{Group: "user:1001", Name: "like", Window: counter.Day, Zone: actions.Zone})
	for _, bad := range []error{
		second(actions.Record(t.Context(), "", "like")), second(actions.Record(t.Context(), "u")), second(actions.Read(t.Context(), "u", "")),
		second(actions.Read(t.Context(), string(make([]byte, 252)), "like")), second(actions.History(t.Context(), "u", counter.Minute, 1, "like")),
		second(actions.History(t.Context(), "u", counter.Day, 367, "like")), second(actions.Record(t.Context(), "u", make([]string, 129)...)),
	} {
		if invalid := (*weir.InvalidError)(nil); !errors.As(bad, &invalid) {
			t.Errorf("%v is no InvalidError", bad)
		}
	}
}
