package httplimit

import (
	"runtime"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/weirhq/weir/engine"
)

// mark is, in a request's context, that an engine has judged it.
type mark struct{ by *engine.Engine }

// mounts is how many handlers are wrapped for an engine, by whichever middleware. As
// long as it is one, no request can come to the engine a second time, and none needs
// a mark, which would be two allocations.
var mounts sync.Map // weak.Pointer[engine.Engine] → *atomic.Int64

// mountsOf counts for one engine, as long as that lives.
func mountsOf(e *engine.Engine) *atomic.Int64 {
	key := weak.Make(e)
	n, known := mounts.LoadOrStore(key, new(atomic.Int64))
	if !known {
		runtime.AddCleanup(e, func(key weak.Pointer[engine.Engine]) { mounts.Delete(key) }, key)
	}
	return n.(*atomic.Int64)
}
