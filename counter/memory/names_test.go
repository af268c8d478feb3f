package memory

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
)

// What has expired is not listed, and if there are more names than wanted, those that changed last are.
func TestNamesAreCurrent(t *testing.T) {
	now := weir.MicrosOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	s := New(Options{Clock: func() weir.Micros { return now }})
	add := func(name string, w counter.Window) {
		t.Helper()
		if _, err := s.Add(t.Context(), counter.Delta{Key: counter.Key{Name: name, Window: w}, By: counter.One}); err != nil {
			t.Fatal(err)
		}
	}
	list := func(n int) string {
		t.Helper()
		names, err := s.Names(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprint(names.More)
		for _, one := range names.All {
			text += " " + one.Name
		}
		return text
	}
	add("short", counter.Second)
	for _, name := range []string{"c", "a", "b"} {
		add(name, counter.Ever)
	}
	add("c", counter.Ever)
	for n, want := range map[int]string{4: "false a b c short", 2: "true b c", 1: "true c"} {
		if got := list(n); got != want {
			t.Errorf("%d names are %s, want %s", n, got, want)
		}
	}
	now += micros(2 * time.Hour)
	if got := list(10); got != "false a b c" {
		t.Errorf("later, the names are %s", got)
	}
}
