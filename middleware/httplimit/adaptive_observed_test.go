package httplimit

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

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
	m := testkit.Must(New(e, Options{Adaptive: Adaptive{Min: 3, Max: 3}}))(t)
	var during engine.AdaptiveLimit
	h := m.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { during = w["httplimit"]() }))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	if after := w["httplimit"](); during != (engine.AdaptiveLimit{Limit: 3, InFlight: 1}) || after != (engine.AdaptiveLimit{Limit: 3}) {
		t.Errorf("%+v, then %+v", during, after)
	}
}
