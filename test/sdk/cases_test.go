package sdk

import (
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	weirhq "github.com/weirhq/weir"
	"github.com/weirhq/weir/client"
	"github.com/weirhq/weir/counter"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// table is cases.json, which the clients for other languages read, too.
type table struct {
	About    string
	Counters []counting
	Checks   []struct {
		Name  string
		Steps []step
	}
	HTTP []exchange
}

// step is a call, and what comes of it.
type step struct {
	Call, Hold, Error string
	Request           *asked
	Used              json.RawMessage
	TTLMinutes        int `json:"ttl_minutes"`
	Want              any
}

// asked is a request as the HTTP API has it.
type asked struct {
	IP, User, Tier, Path string
	Priority             string
	Headers, Attributes  map[string]string
	Cost                 json.RawMessage
}

func readTable(t *testing.T, name string) (all table) {
	t.Helper()
	text, err := os.ReadFile("cases.json")
	if err != nil {
		t.Fatal(err)
	}
	reader := json.NewDecoder(strings.NewReader(strings.ReplaceAll(string(text), "$", name+"-")))
	reader.DisallowUnknownFields()
	if err := reader.Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

// The Go client answers as the table says.
func TestCases(t *testing.T) {
	c, err := client.New(client.Options{Address: weir.grpc, Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	for _, test := range readTable(t, "go").Checks {
		t.Run(test.Name, func(t *testing.T) {
			var hold *client.Hold
			for i, s := range test.Steps {
				got, err := s.make(t, c, &hold)
				if code := codeOf(err); code != s.Error {
					t.Fatalf("step %d: %v, which is %q; want %q", i+1, err, code, s.Error)
				}
				if err == nil && !contains(s.Want, got) {
					t.Fatalf("step %d: got\n%v\nwant\n%v", i+1, got, s.Want)
				}
			}
		})
	}
}

// make makes the call.
func (s *step) make(t *testing.T, c *client.Client, hold **client.Hold) (any, error) {
	ctx, ttl := t.Context(), time.Duration(s.TTLMinutes)*time.Minute
	var v *client.Verdict
	var settled client.Settled
	var err error
	switch s.Call {
	case "check":
		v, err = c.Check(ctx, s.request(t))
	case "peek":
		v, err = c.Peek(ctx, s.request(t))
	case "charge":
		v, err = c.Charge(ctx, s.request(t))
	case "reserve":
		*hold, v, err = c.Reserve(ctx, s.request(t), ttl)
	case "hold":
		*hold = c.Hold(s.Hold)
		return map[string]any{}, nil
	case "settle":
		if n, units := amount(t, s.Used); units != nil {
			settled, err = (*hold).SettleUnits(ctx, units)
		} else {
			settled, err = (*hold).Settle(ctx, n)
		}
	case "cancel":
		settled, err = (*hold).Cancel(ctx)
	case "extend":
		settled, err = (*hold).Extend(ctx, ttl)
	default:
		t.Fatalf("there is no call %q", s.Call)
	}
	if v != nil {
		return described(v), err
	}
	return describedHold(settled), err
}

func (s *step) request(t *testing.T) *client.Request {
	a := s.Request
	r := &client.Request{User: a.User, Tier: a.Tier, Path: a.Path, Headers: a.Headers, Attributes: a.Attributes}
	for r.Priority.String() != a.Priority {
		r.Priority++
	}
	if a.IP == "300.1.1.1" {
		r.Path = "a mistake that Go makes impossible"
	} else if a.IP != "" {
		r.IP = netip.MustParseAddr(a.IP)
	}
	r.Cost, r.Costs = amount(t, a.Cost)
	return r
}

// amount is a number, or numbers by unit.
func amount(t *testing.T, text json.RawMessage) (n int64, units map[string]int64) {
	t.Helper()
	if len(text) > 0 && json.Unmarshal(text, &n) != nil {
		if err := json.Unmarshal(text, &units); err != nil {
			t.Fatal(err)
		}
	}
	return n, units
}

func described(v *client.Verdict) any {
	results := []any{}
	for _, r := range v.Results {
		results = append(results, map[string]any{
			"rule": r.Rule, "level": r.Level, "key": r.Key, "algorithm": r.Algorithm, "policy": r.Policy, "allowed": r.Allowed, "shadow": r.Shadow, "soft": r.Soft, "warning": float64(r.Warning),
			"asked": r.Asked, "cost": float64(r.Cost), "retry_after_minutes": minutes(r.RetryAfter),
		})
	}
	return map[string]any{
		"allowed": v.Allowed, "reason": v.Reason.String(), "rule": v.Rule, "level": v.Level, "status": float64(v.Status), "code": float64(v.Code), "message": v.Message,
		"limit": float64(v.Limit), "remaining": float64(v.Remaining), "degraded": v.Degraded, "version": float64(v.Version),
		"reset_after_minutes": minutes(v.ResetAfter), "retry_after_minutes": minutes(v.RetryAfter), "results": results,
	}
}

func describedHold(s client.Settled) any {
	parts := []any{}
	for _, p := range s.Parts {
		parts = append(parts, map[string]any{
			"rule": p.Rule, "unit": p.Unit, "shadow": p.Shadow, "reserved": float64(p.Reserved), "used": float64(p.Used), "excess": float64(p.Excess),
		})
	}
	return map[string]any{"pending": s.Pending, "open": !s.Expires.IsZero(), "parts": parts}
}

func minutes(d time.Duration) float64 { return float64((d + time.Minute - 1) / time.Minute) }

// contains reports whether got has all that want has.
func contains(want, got any) bool {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		for name, value := range w {
			ok = ok && contains(value, g[name])
		}
		return ok
	case []any:
		g, ok := got.([]any)
		ok = ok && len(g) == len(w)
		for i := range w {
			ok = ok && contains(w[i], g[i])
		}
		return ok
	}
	return reflect.DeepEqual(want, got)
}

// codeOf is how the other clients call an error.
func codeOf(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, client.ErrHoldUnknown):
		return "hold-unknown"
	case errors.Is(err, client.ErrHoldExpired):
		return "hold-expired"
	case errors.Is(err, counter.ErrRange):
		return "out-of-range"
	case status.Code(err) == codes.InvalidArgument, errors.As(err, new(*weirhq.InvalidError)):
		return "invalid"
	}
	return "another"
}
