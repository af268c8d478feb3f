package build

import (
	"runtime/debug"
	"testing"
)

func TestDescribe(t *testing.T) {
	recorded := &debug.BuildInfo{Main: debug.Module{Version: "v0.1.0"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-11-16T12:00:00Z"}, {Key: "vcs.modified", Value: "true"}, {Key: "-tags", Value: "x"},
	}}
	got := describe(recorded)
	if got.Go == "" || got.Platform == "" {
		t.Errorf("%+v", got)
	}
	got.Go, got.Platform = "", ""
	if want := (Info{Version: "v0.1.0", Commit: "abc", Time: "2026-11-16T12:00:00Z", Modified: true}); got != want {
		t.Errorf("%+v", got)
	}
	if got := describe(&debug.BuildInfo{}); got.Version != "(unknown)" || got.Commit != "" {
		t.Errorf("of nothing: %+v", got)
	}
}
