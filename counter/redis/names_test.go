package redis

import (
	"testing"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/testkit/testredis"
)

// A list has the names of its own prefix, whatever characters that has, and not those of others.
func TestNamesOfPrefix(t *testing.T) {
	client := clientOf(t, testredis.Start(t))
	for _, prefix := range []string{"[x]:", "x:", `a*\?:`, "ab:", "weir:counter:"} {
		s := storeOn(t, client, Options{Prefix: prefix})
		if _, err := s.Add(t.Context(), counter.Delta{Key: counter.Key{Name: "of " + prefix}, By: counter.One}); err != nil {
			t.Fatal(err)
		}
	}
	for _, prefix := range []string{"[x]:", "x:", `a*\?:`, "ab:"} {
		names, err := storeOn(t, client, Options{Prefix: prefix}).Names(t.Context(), 10)
		if err != nil || names.More || len(names.All) != 1 || names.All[0].Name != "of "+prefix {
			t.Errorf("%q has %+v, %v", prefix, names, err)
		}
	}
}

// Keys that another program, or a later version, writes below the prefix are left out.
func TestNamesOfForeignKeys(t *testing.T) {
	for _, key := range []string{"", "c", "c:day", "c:day:UTC", "c:never:UTC{a}", "c:day:UTC:a:b{g}", "x:day:UTC{a}", "b:day:UTC:0{a}", "b:day:UTC{a}", "s:60:sum{a}", "s:x:meta{a}", "h:99999999999:meta{a}", "d0:day:UTC{a}", "i{orders}", "c:day:UTC{a}b"} {
		if one, ok := named(key); ok {
			t.Errorf("%q is %+v", key, one)
		}
	}
}
