package engine_test

import (
	"context"
	"net/netip"
	"testing"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
)

func TestLoad(t *testing.T) {
	e, err := engine.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Load("rules.yaml", []byte("rules: [{id: a, key: ip, limit: 5/1m}]")); err != nil {
		t.Fatal(err)
	}
	if table, version := e.Rules(); version != 1 || len(table.Rules()) != 1 {
		t.Errorf("version %d with %d rules", version, len(table.Rules()))
	}
	if err := e.Load("rules.yaml", []byte("rules: [{}]")); err == nil {
		t.Error("a document with mistakes was loaded")
	}
	if _, version := e.Rules(); version != 1 {
		t.Errorf("a mistake made version %d", version)
	}
}

func TestJudge(t *testing.T) {
	e, err := engine.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Load("rules.yaml", []byte("rules: [{id: a, key: user, algorithm: sliding_log, limits: [2/1h, 5/1d]}, {id: b, key: ip, limit: 1000000/1s}]")); err != nil {
		t.Fatal(err)
	}
	req := rule.Request{User: "alice", IP: netip.MustParseAddr("192.0.2.1"), Path: "/"}
	for i := range 3 {
		v, err := e.CheckNew(t.Context(), req)
		if err != nil || v.Allowed != (i < 2) || len(v.Results) != 3 || v.Results[0].Key != "user:alice" {
			t.Errorf("request %d: %+v, %v", i+1, v, err)
		}
	}
	ctx := context.Background()
	req.User = "bob"
	if n := testing.AllocsPerRun(100, func() { _, _ = e.CheckNew(ctx, req) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
	req.Cost = -1
	if _, err := e.CheckNew(t.Context(), req); err == nil {
		t.Error("a negative cost was accepted")
	}
}
