package envoyrls

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/envoy/envoyconfig"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/store/memory"
)

func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }

// bench is a service on a store in memory, whose time stands still and which can be lost.
type bench struct {
	*Service
	now  atomic.Int64
	lost atomic.Bool
	log  logged
	weir.HoldStore
}

var errLost = errors.New("it is lost")

func (b *bench) Take(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	if b.lost.Load() {
		return nil, errLost
	}
	return b.HoldStore.Take(ctx, dst, ops...)
}

func (b *bench) Peek(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	if b.lost.Load() {
		return nil, errLost
	}
	return b.HoldStore.Peek(ctx, dst, ops...)
}

func (b *bench) Reserve(ctx context.Context, dst []weir.Decision, r weir.Reservation, ops ...weir.Op) ([]weir.Decision, error) {
	if b.lost.Load() {
		return nil, errLost
	}
	return b.HoldStore.Reserve(ctx, dst, r, ops...)
}

func (b *bench) Settle(ctx context.Context, s weir.Settlement) (weir.Settled, error) {
	if b.lost.Load() {
		return weir.Settled{}, errLost
	}
	return b.HoldStore.Settle(ctx, s)
}

func newBench(t testing.TB, source string, o Options) *bench {
	t.Helper()
	config, problems := envoyconfig.Read([]envoyconfig.File{{Name: "test.yaml", Source: []byte(source)}}, envoyconfig.Options{})
	if config == nil {
		t.Fatal(problems)
	}
	b := &bench{}
	b.now.Store(int64(24*3600*1_000_000*20_000) + 1_500_000) // a second and a half into a day
	clock := func() weir.Micros { return weir.Micros(b.now.Load()) }
	b.HoldStore = memory.New(memory.Options{Clock: clock})
	var err error
	if o.Engine, err = engine.New(engine.Options{Store: b, Clock: clock}); err != nil {
		t.Fatal(err)
	}
	o.Clock, o.Logger = clock, slog.New(slog.NewTextHandler(&b.log, nil))
	if o.Config == nil {
		o.Config = func() *envoyconfig.Config { return config }
	}
	if b.Service, err = New(o); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) wait(d time.Duration) { b.now.Add(d.Microseconds()) }

// request is one of descriptors as in "a=1,b=2", each perhaps followed by what it costs
// and by the limit that it brings, as in "a=1 x3 5/minute".
func request(descriptors ...string) *pb.RateLimitRequest {
	req := &pb.RateLimitRequest{Domain: "d"}
	for _, text := range descriptors {
		words := strings.Fields(text)
		d := &common.RateLimitDescriptor{}
		for pair := range strings.SplitSeq(words[0], ",") {
			key, value, _ := strings.Cut(pair, "=")
			d.Entries = append(d.Entries, &common.RateLimitDescriptor_Entry{Key: key, Value: value})
		}
		for _, word := range words[1:] {
			var n uint64
			var unit string
			if _, err := fmt.Sscanf(word, "x%d", &n); err == nil {
				d.HitsAddend = wrapperspb.UInt64(n)
			} else if _, err := fmt.Sscanf(word, "%d/%s", &n, &unit); err == nil {
				d.Limit = &common.RateLimitDescriptor_RateLimitOverride{
					RequestsPerUnit: uint32(n), Unit: typev3.RateLimitUnit(typev3.RateLimitUnit_value[strings.ToUpper(unit)]),
				}
			} else {
				panic(word)
			}
		}
		req.Descriptors = append(req.Descriptors, d)
	}
	return req
}

// said is an answer in short: the overall code, and of each descriptor the code, what
// remains, the limit and the seconds until the reset.
func said(r *pb.RateLimitResponse, err error) string {
	if err != nil {
		return status.Code(err).String()
	}
	text := short(r.OverallCode)
	for _, st := range r.Statuses {
		text += fmt.Sprintf(" | %s %d", short(st.Code), st.LimitRemaining)
		if l := st.CurrentLimit; l != nil {
			text += fmt.Sprintf(" of %d/%s", l.RequestsPerUnit, strings.ToLower(l.Unit.String()))
			if l.Name != "" {
				text += " " + l.Name
			}
		}
		if st.DurationUntilReset != nil {
			text += fmt.Sprintf(" in %ds", st.DurationUntilReset.Seconds)
		}
	}
	for i, h := range r.ResponseHeadersToAdd {
		text += [...]string{" || ", ", ", ", "}[i] + h.Key + " " + h.Value
	}
	return text
}

func short(c pb.RateLimitResponse_Code) string {
	return map[pb.RateLimitResponse_Code]string{pb.RateLimitResponse_OK: "ok", pb.RateLimitResponse_OVER_LIMIT: "over"}[c]
}

// step is a request and what is said to it.
type step struct {
	req  *pb.RateLimitRequest
	want string
}

func (b *bench) run(t *testing.T, steps ...step) {
	t.Helper()
	for i, s := range steps {
		if got := said(b.ShouldRateLimit(t.Context(), s.req)); got != s.want {
			t.Errorf("request %d, %v:\n got %s\nwant %s", i+1, s.req, got, s.want)
		}
	}
}

// logged is what a logger was told.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) lines() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), "\n")
}
