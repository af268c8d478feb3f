package rulefile_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/rule/rulefile"
)

// An engine follows its file: a rule that is edited is in force within moments.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(path, []byte("rules: [{id: api, key: ip, limit: 2/1m}]"), 0o600); err != nil {
		panic(err)
	}

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	rules, err := rulefile.Open(ctx, path, engine.Options{})
	if err != nil {
		panic(err)
	}
	for range 3 {
		v, err := rules.CheckNew(ctx, rule.Request{IP: netip.MustParseAddr("203.0.113.7"), Path: "/"})
		fmt.Println(v.Allowed, err)
	}
	// Output:
	// true <nil>
	// true <nil>
	// false <nil>
}
