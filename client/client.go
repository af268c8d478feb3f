// Package client asks a weir service whether a request is allowed.
//
//	c, err := client.New(client.Options{Address: "127.0.0.1:8081"})
//	verdict, err := c.Check(ctx, &client.Request{User: "alice", Path: "/api/items"})
//	if err == nil && !verdict.Allowed {
//		// 429, and verdict.RetryAfter
//	}
//
// An unavailable service is not an error: Options.OnFailure decides the answer, which
// is marked as Degraded. After three failures in a row the circuit breaker opens, so
// that no call waits. The client then probes the service in the background, and uses it
// again as soon as it answers.
//
// The client sends no call twice, because both could be charged. A call that was sent
// but not answered may have been charged.
//
// If the cost of a request is known only afterwards, [Client.Reserve] charges an estimate
// and returns a [Hold], to settle with the real cost. [Client.Counters] counts for your
// application.
package client

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// MaxRequests is the maximum number of requests in one CheckMany.
const MaxRequests = 100

// ErrClosed is returned by a client that was closed.
var ErrClosed = errors.New("client: the client is closed; create another with New")

// errCrowded is why a call was not sent, while the service may be well.
var errCrowded = errors.New("too many calls are in flight; raise MaxInFlight, or send fewer calls")

// Client asks a weir service. It is safe for concurrent use. Share one client in your
// program, because all its calls share one connection.
type Client struct {
	options  Options
	conn     *grpc.ClientConn
	limiter  pb.LimiterClient
	counters pb.CountersClient
	inFlight atomic.Int64
	breaker  breaker
}

// New returns a client. It connects in the background, so an unavailable service is not
// an error.
func New(o Options) (*Client, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient(o.Address, o.dial()...)
	if err != nil {
		return nil, fmt.Errorf("client: Options.Address: %w", err)
	}
	c := &Client{options: o, conn: conn, limiter: pb.NewLimiterClient(conn), counters: pb.NewCountersClient(conn)}
	c.breaker.init(c)
	conn.Connect()
	return c, nil
}

// dial are options by which a connection that is lost is found out and made again within
// a second, and no call is ever sent again by the library.
func (o *Options) dial() []grpc.DialOption {
	trust := insecure.NewCredentials()
	if o.TLS != nil {
		trust = credentials.NewTLS(o.TLS.Clone())
	}
	return []grpc.DialOption{
		grpc.WithTransportCredentials(trust),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]}`),
		grpc.WithNoProxy(),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 2 * time.Second,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 2 * time.Second, PermitWithoutStream: true}),
	}
}

// Close closes the client. Calls in flight end, too.
func (c *Client) Close() error {
	c.breaker.close()
	return c.conn.Close()
}

// Check asks whether a request is allowed, and charges it. It returns an error if the
// context ended, the request is invalid, or the service does not accept Options.Token. An
// unavailable service is not an error.
func (c *Client) Check(ctx context.Context, r *Request) (*Verdict, error) {
	return c.askVerdict(ctx, r, c.limiter.Check)
}

// Peek returns the answer that Check would return, and charges nothing.
func (c *Client) Peek(ctx context.Context, r *Request) (*Verdict, error) {
	return c.askVerdict(ctx, r, c.limiter.Peek)
}

type method func(context.Context, *pb.CheckRequest, ...grpc.CallOption) (*pb.CheckResponse, error)

func (c *Client) askVerdict(ctx context.Context, r *Request, call method) (*Verdict, error) {
	var answer *pb.CheckResponse
	away, err := c.ask(ctx, func(ctx context.Context) (err error) {
		answer, err = call(ctx, r.message())
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case away != nil:
		return c.local(away), nil
	}
	return verdictOf(answer), nil
}

// CheckMany checks up to MaxRequests requests in one round trip, each by itself and in
// this order. If one is invalid, none is charged.
func (c *Client) CheckMany(ctx context.Context, rs []*Request) ([]*Verdict, error) {
	if len(rs) > MaxRequests {
		return nil, fmt.Errorf("client: %d requests are too many for one call; send at most %d", len(rs), MaxRequests)
	}
	req := &pb.CheckManyRequest{Requests: make([]*pb.CheckRequest, len(rs))}
	for i, r := range rs {
		req.Requests[i] = r.message()
	}
	var answer *pb.CheckManyResponse
	away, err := c.ask(ctx, func(ctx context.Context) (err error) {
		answer, err = c.limiter.CheckMany(ctx, req)
		if err == nil && len(answer.GetResponses()) != len(rs) {
			err = status.Errorf(codes.Internal, "%d requests have %d answers", len(rs), len(answer.GetResponses()))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	verdicts := make([]*Verdict, len(rs))
	for i := range verdicts {
		if away != nil {
			verdicts[i] = c.local(away)
		} else {
			verdicts[i] = verdictOf(answer.GetResponses()[i])
		}
	}
	return verdicts, nil
}

// ask calls the service, and tells the breaker what came of it. Away is why the service could
// not be asked; an error is for the caller.
func (c *Client) ask(ctx context.Context, call func(context.Context) error) (away, err error) {
	away, err = c.call(ctx, call)
	switch {
	case away != nil || isOurs(err):
		return away, err // which says nothing about the service
	case err == nil:
		c.breaker.succeeded()
		return nil, nil
	case isMistake(err):
		c.breaker.succeeded()
		return nil, fmt.Errorf("client: %w", err)
	}
	return c.breaker.failed(err)
}

// call makes a call, unless the breaker is open or there are too many. Away is why it was not
// made. That the caller has no more time is an error of a context; other errors are the
// service's.
func (c *Client) call(ctx context.Context, call func(context.Context) error) (away, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if away, err := c.breaker.state(); away != nil || err != nil {
		return away, err
	}
	defer c.inFlight.Add(-1)
	if c.inFlight.Add(1) > int64(c.options.MaxInFlight) {
		return awayBecause(errCrowded), nil
	}
	limited, cancel := context.WithTimeout(c.options.sign(ctx), c.options.Timeout)
	defer cancel()
	err = call(limited)
	switch {
	case err == nil:
		return nil, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case status.Code(err) == codes.DeadlineExceeded && endsFirst(ctx, limited):
		return nil, context.DeadlineExceeded // and the service has noticed before us
	}
	return nil, err
}

// isOurs is whether a call ended because of the caller, who may have closed the client.
func isOurs(err error) bool {
	return errors.Is(err, ErrClosed) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// endsFirst is whether a deadline is the caller's own, and not ours.
func endsFirst(callers, limited context.Context) bool {
	theirs, ok := callers.Deadline()
	ours, _ := limited.Deadline()
	return ok && !theirs.After(ours)
}

// isMistake is whether the service is well, and the request or the token is not.
func isMistake(err error) bool {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.FailedPrecondition, codes.NotFound, codes.Unauthenticated, codes.PermissionDenied:
		return true
	}
	return false
}

// sign adds the token.
func (o *Options) sign(ctx context.Context) context.Context {
	if o.Token == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+o.Token)
}

func awayBecause(err error) error {
	return fmt.Errorf("client: the service is unavailable: %w", err)
}

// Request describes a request. Omit what you do not know; rules that need it do not
// apply. The service accepts at most 64 KiB. Bytes that are not UTF-8 are sent as U+FFFD.
type Request struct {
	IP     netip.Addr // of the client; it must be trustworthy
	User   string
	APIKey string // in clear text; the service hashes it before it stores or logs anything
	Tier   string
	Method string
	Host   string
	Path   string // escaped, as it was sent; a query after it is ignored

	// Priority is how important the request is. Default the priority that the rules give it.
	Priority Priority

	// Headers, Cookies and Query are those that your rules use. Attributes are defined
	// by your application, such as action: post.
	Headers, Cookies, Query, Attributes map[string]string

	Cost int64 // 0 for the cost that each rule defines

	// Costs are costs by the unit of a rule, instead of Cost. Rules with other units, or
	// without, have the cost that they define. A unit that no rule has is an error.
	Costs map[string]int64
}

// Priority tells how important a request is; a greater one is more important.
type Priority uint8

const (
	Low Priority = 1 + iota
	Normal
	High
	Critical
)

// String returns the name of the priority, or "" for none.
func (p Priority) String() string {
	names := [...]string{"", "low", "normal", "high", "critical"}
	if int(p) < len(names) {
		return names[p]
	}
	return "unknown"
}

// message is the request as it goes over the wire. The maps are not copied.
func (r *Request) message() *pb.CheckRequest {
	m := &pb.CheckRequest{
		User: text(r.User), ApiKey: text(r.APIKey), Tier: text(r.Tier), Method: text(r.Method), Host: text(r.Host), Path: text(r.Path),
		Headers: texts(r.Headers), Cookies: texts(r.Cookies), Query: texts(r.Query), Attributes: texts(r.Attributes),
		Cost: r.Cost, Costs: r.Costs, Priority: pb.Priority(r.Priority),
	}
	if r.IP.IsValid() {
		m.Ip = r.IP.String()
	}
	return m
}

// text is what can be sent of a text. Bytes that are not UTF-8 cannot: the library would call
// them an error of the service, so that clients could be checked no more by sending some.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// texts is the same for a map, which is not changed.
func texts(all map[string]string) map[string]string {
	for name, value := range all {
		if utf8.ValidString(name) && utf8.ValidString(value) {
			continue
		}
		valid := make(map[string]string, len(all))
		for name, value := range all {
			valid[text(name)] = text(value)
		}
		return valid
	}
	return all
}
