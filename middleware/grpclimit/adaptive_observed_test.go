package grpclimit

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
)

// adaptiveWatcher is an observer that is told of adaptive limits.
type adaptiveWatcher map[string]func() engine.AdaptiveLimit

func (adaptiveWatcher) Observe(*rule.Request, *engine.Verdict, time.Duration) {}
func (w adaptiveWatcher) ObserveAdaptive(name string, state func() engine.AdaptiveLimit) {
	w[name] = state
}

// Observers of the engine can read the limit at any time. Without one they are told nothing.
func TestAdaptiveIsObserved(t *testing.T) {
	w := adaptiveWatcher{}
	e := testkit.Must(engine.New(engine.Options{Observers: []engine.Observer{w}}))(t)
	testkit.Must(New(e, Options{}))(t)
	if len(w) != 0 {
		t.Error(w)
	}
	l := testkit.Must(New(e, Options{Adaptive: Adaptive{Min: 3, Max: 3}}))(t)
	var during engine.AdaptiveLimit
	handler := func(context.Context, any) (any, error) { during = w["grpclimit"](); return nil, nil }
	testkit.Must(l.Unary()(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: "/a/b"}, handler))(t)
	if after := w["grpclimit"](); during != (engine.AdaptiveLimit{Limit: 3, InFlight: 1}) || after != (engine.AdaptiveLimit{Limit: 3}) {
		t.Errorf("%+v, then %+v", during, after)
	}
}
