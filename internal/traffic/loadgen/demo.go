package loadgen

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/clock"
)

// DemoRules are those of the API.
//
//go:embed rules.yaml
var DemoRules []byte

// Call is one request to the API, and so one question to weir.
type Call struct {
	IP     string           `json:"ip,omitempty"`
	User   string           `json:"user,omitempty"`
	Tier   string           `json:"tier,omitempty"`
	Method string           `json:"method"`
	Path   string           `json:"path"`
	Cost   map[string]int64 `json:"cost,omitempty"` // to reserve, if there is any

	Used  int64         `json:"-"` // of what is reserved
	Takes time.Duration `json:"-"` // until that is known
}

// DemoScene is something that happens beside the ordinary traffic.
type DemoScene struct {
	From, To time.Duration // in a cycle
	What     string
}

// Cycle is after how long the scenes begin again.
const Cycle = 4 * time.Minute

// The scenes, in their order.
var (
	attack = DemoScene{20 * time.Second, 50 * time.Second, "someone guesses passwords from three addresses"}
	abuse  = DemoScene{70 * time.Second, 110 * time.Second, "a client of the free plan searches without a pause"}
	spike  = DemoScene{130 * time.Second, 150 * time.Second, "a sale begins: four times the ordinary traffic"}
	retry  = DemoScene{180 * time.Second, 210 * time.Second, "an app of the pro plan retries in a loop"}

	Scenes = []DemoScene{attack, abuse, spike, retry}
)

func (s DemoScene) contains(at time.Duration) bool { return at >= s.From && at < s.To }

// Script decides who calls when. It knows no clock. It is for one goroutine.
type Script struct {
	random *rand.Rand
	owed   [5]float64 // parts of calls that are due, by source
}

// NewScript returns a script. Two with the same seed are equal.
func NewScript(seed uint64) *Script {
	return &Script{random: rand.New(rand.NewPCG(seed, 0))}
}

// Next returns the calls of a short time, at a point of the script.
func (s *Script) Next(at, short time.Duration) (calls []Call) {
	at %= Cycle
	ordinary := 25 + 10*math.Sin(at.Seconds()*2*math.Pi/60) // per second
	if spike.contains(at) {
		ordinary *= 4
	}
	for i, source := range [...]struct {
		rate float64
		call func() Call
	}{
		{ordinary, s.ordinary},
		{3, s.chat},
		{rateIn(attack, at, 9), s.guess},
		{rateIn(abuse, at, 12), func() Call { return user(59, "/api/search") }},
		{rateIn(retry, at, 40), func() Call { return user(2, "/api/orders/4711") }},
	} {
		s.owed[i] += source.rate * short.Seconds()
		for ; s.owed[i] >= 1; s.owed[i]-- {
			calls = append(calls, source.call())
		}
	}
	return calls
}

func rateIn(s DemoScene, at time.Duration, rate float64) float64 {
	if s.contains(at) {
		return rate
	}
	return 0
}

// users is how many of them there are. The last three of four have the free plan.
const users = 60

// user is a call of one of them.
func user(n int, path string) Call {
	c := Call{User: name(n), IP: fmt.Sprintf("198.51.100.%d", n+1), Tier: "free", Method: "GET", Path: path}
	switch {
	case n%20 == 0:
		c.Tier = "business"
	case n%4 == 2:
		c.Tier = "pro"
	}
	return c
}

// name is what people call a user.
func name(n int) string {
	names := [...]string{"alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi", "ivan", "judy", "mallory", "niaj", "olivia", "peggy", "rupert"}
	if n < len(names) {
		return names[n]
	}
	return fmt.Sprintf("%s%d", names[n%len(names)], n/len(names)+1)
}

// ordinary is a call such as most of them are: a few users call often, most of them rarely.
func (s *Script) ordinary() Call {
	n := int(users * math.Pow(s.random.Float64(), 2.2))
	switch k := s.random.IntN(100); {
	case k < 50:
		return user(n, fmt.Sprintf("/api/items/%d", 1+s.random.IntN(500)))
	case k < 75:
		return user(n, "/api/items")
	case k < 88:
		return user(n, "/api/orders")
	case k < 93:
		return user(n, "/api/search")
	case k < 95:
		c := user(n, "/api/login")
		c.Method = "POST"
		return c
	case k < 98:
		return Call{User: "healthcheck", IP: "10.0.0.7", Method: "GET", Path: "/api/items"}
	}
	return Call{IP: "203.0.113.66", Method: "GET", Path: "/api/items"}
}

// guess is a login with a wrong password.
func (s *Script) guess() Call {
	return Call{IP: fmt.Sprintf("203.0.113.%d", 10+s.random.IntN(3)), Method: "POST", Path: "/api/login"}
}

// chat is a call of a language model, which uses less than it reserves, as a rule.
func (s *Script) chat() Call {
	c := user(int(users/4*math.Pow(s.random.Float64(), 2)), "/api/chat")
	estimate := int64(400 + s.random.IntN(1600))
	c.Method, c.Cost = "POST", map[string]int64{"tokens": estimate}
	c.Used = int64(float64(estimate) * (0.3 + 0.8*s.random.Float64()))
	c.Takes = time.Duration(300+s.random.IntN(2500)) * time.Millisecond
	return c
}

const (
	tick    = 50 * time.Millisecond
	callers = 16
	timeout = 5 * time.Second
)

// DemoPlayer sends the traffic of a script to a weir.
type DemoPlayer struct {
	URL string // of weir's HTTP API

	// Speed is how fast the scenes follow each other. The rate of calls stays what it is.
	// Default 1.
	Speed float64

	// Begin is called when a scene begins.
	Begin func(at time.Duration, s DemoScene)

	client  *http.Client
	room    chan struct{} // a place for each call in flight
	flights sync.WaitGroup
}

// Play sends traffic until the context ends. A call that finds all callers busy is left out,
// so that a slow weir is not flooded.
func (p *DemoPlayer) Play(ctx context.Context) {
	transport := &http.Transport{MaxIdleConnsPerHost: callers}
	defer transport.CloseIdleConnections()
	p.client = &http.Client{Transport: transport, Timeout: timeout}
	p.room = make(chan struct{}, callers)
	defer p.flights.Wait()
	if p.Speed <= 0 {
		p.Speed = 1
	}
	script, start, last, at := NewScript(1), time.Now(), time.Duration(0), time.Duration(0)
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		now := time.Since(start)
		before := at
		at = time.Duration(float64(now) * p.Speed)
		p.announce(before, at)
		// After a pause, as of a laptop that slept, nothing is made up for.
		for _, c := range script.Next(at, min(now-last, 4*tick)) {
			p.send(ctx, c)
		}
		last = now
	}
}

// announce tells which scenes begin.
func (p *DemoPlayer) announce(before, at time.Duration) {
	if p.Begin == nil {
		return
	}
	for _, s := range Scenes {
		if begin := at - (at-s.From)%Cycle; at >= s.From && before < begin {
			p.Begin(begin, s)
		}
	}
}

// send makes a call, unless all callers are busy.
func (p *DemoPlayer) send(ctx context.Context, c Call) {
	select {
	case p.room <- struct{}{}:
	default:
		return
	}
	p.flights.Go(func() {
		hold := p.ask(ctx, c)
		<-p.room
		if hold == "" {
			return
		}
		if clock.Sleep(ctx, c.Takes) != nil {
			return
		}
		_ = p.post(ctx, "/v1/settle", fmt.Appendf(nil, `{"hold": %q, "used": {"tokens": %d}}`, hold, c.Used), nil)
	})
}

// ask asks weir about a call, and returns the hold, if there is one.
func (p *DemoPlayer) ask(ctx context.Context, c Call) (hold string) {
	body, err := json.Marshal(c)
	if err != nil {
		return ""
	}
	if c.Cost == nil {
		_ = p.post(ctx, "/v1/check", body, nil) // weir shows what came of it
		return ""
	}
	var answer struct{ Hold string }
	if p.post(ctx, "/v1/reserve", body, &answer) != nil {
		return ""
	}
	return answer.Hold
}

func (p *DemoPlayer) post(ctx context.Context, path string, body []byte, answer any) error {
	req, err := http.NewRequestWithContext(ctx, "POST", p.URL+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil || answer == nil {
		return err
	}
	return json.Unmarshal(text, answer)
}
