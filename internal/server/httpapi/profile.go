package httpapi

import (
	"bytes"
	"net/http"
	"runtime/pprof"
	"time"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
)

// MaxProfile is how long a profile of the CPU may take.
const MaxProfile = time.Minute

const usualProfile = 30 * time.Second

// profileRoutes are there only if Options.Profiles is set. They are no part of the API: what a
// profile contains depends on Go, and may change with each version of weir.
var profileRoutes = []route{{"GET", "/debug/pprof/{profile}", changing, (*Handler).takeProfile}}

// profiles are those that cost nothing while nobody asks for them, with their parameters. The
// profile of the CPU has the name that go tool pprof gives it. Traces of the runtime are not among
// them: a client that reads slowly would make their buffers grow without bound.
var profiles = map[string][]string{"allocs": nil, "goroutine": nil, "heap": nil, "profile": {"seconds"}}

var typeBinary = []string{"application/octet-stream"}

// takeProfile answers GET /debug/pprof/{profile}, with one profile at a time.
func (h *Handler) takeProfile(c *call) (any, error) {
	if c.caller.Via != manage.ByToken {
		return nil, fault.Forbidden.Of("A profile requires a token with the right admin in the header Authorization: Bearer or Weir-Token; a session or a proxy is not enough.")
	}
	parameters, found := profiles[c.variable]
	if !found {
		return nil, fault.NotFound.Of("There is no such profile; the profiles are allocs, goroutine, heap and profile.")
	}
	q := c.query(parameters...)
	length := time.Duration(q.whole("seconds", int64(usualProfile/time.Second), 1, int64(MaxProfile/time.Second))) * time.Second
	if q.err != nil {
		return nil, q.err
	}
	if !h.profiling.CompareAndSwap(false, true) {
		return nil, fault.Busy.Of("Another profile is being taken; try again when it has ended, in at most %d s.", MaxProfile/time.Second).After(fault.Outage)
	}
	defer h.profiling.Store(false)
	var body bytes.Buffer // a client that reads slowly keeps nobody from the next one
	if c.variable != "profile" {
		if err := pprof.Lookup(c.variable).WriteTo(&body, 0); err != nil {
			return nil, err
		}
		return text{typeBinary, body.Bytes()}, nil
	}
	return h.profileCPU(c, &body, length)
}

// profileCPU samples for so long, which may be longer than calls have.
func (h *Handler) profileCPU(c *call, body *bytes.Buffer, length time.Duration) (any, error) {
	control := http.NewResponseController(c.ResponseWriter)
	_ = control.SetReadDeadline(time.Time{}) // a writer without deadlines has none to be lifted
	_ = control.SetWriteDeadline(time.Now().Add(length + time.Minute))
	if c.r.ProtoMajor == 1 {
		c.Header().Set("Connection", "close") // its deadlines are not those of other calls
	}
	if err := pprof.StartCPUProfile(body); err != nil {
		return nil, fault.Busy.Of("This process is being profiled in another way; try again when that has ended.").After(fault.Outage)
	}
	over := time.NewTimer(length)
	defer over.Stop()
	var err error
	select {
	case <-over.C:
	case <-c.r.Context().Done():
		err = c.r.Context().Err()
	case <-h.options.Stopping:
		err = fault.NotReady.Of("weir is stopping; take the profile of another process.")
	}
	pprof.StopCPUProfile() // has written everything when it returns
	return text{typeBinary, body.Bytes()}, err
}
