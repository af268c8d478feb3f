// Package envoyxds subscribes to the configuration of Envoy's rate limit service at an xDS
// control plane, as envoyproxy/ratelimit does with CONFIG_TYPE=GRPC_XDS_SOTW: by the
// aggregated discovery service, state of the world.
//
// Each response is all domains there are. It comes into force as a whole, or is rejected
// with a message that says what is wrong; then, and while the control plane is unavailable,
// the last good configuration stays in force. Resources become what internal/envoy/envoyconfig
// reads from files, so that both mean the same.
package envoyxds

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/disk"
	"github.com/weirhq/weir/internal/envoy/envoyconfig"
	"github.com/weirhq/weir/rule"
)

// TypeURL is of the resources that are subscribed to.
const TypeURL = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"

// Options of a client.
type Options struct {
	// Server is the host:port of the control plane. It is required.
	Server string

	// TLS returns how to connect with TLS. It is called for every connection, so that
	// renewed files are used. Default none: without TLS.
	TLS func() (*tls.Config, error)

	// NodeID is who the client is to the control plane. Default "default".
	NodeID string

	// NodeMetadata tells more about it. Default none.
	NodeMetadata map[string]string

	// HeaderFile has what is sent as headers of the call, such as "authorization: Bearer …",
	// one in a line. It is read for every connection. Default none.
	HeaderFile string

	// Read says how resources are read. Its Install is called with each configuration
	// before it comes into force.
	Read envoyconfig.Options

	// Changed is told of each configuration that came into force, with what is doubtful
	// about it, and why one did not: each reason once. Default nobody is.
	Changed func(Update)

	// Logger is told of the connection. Default slog.Default().
	Logger *slog.Logger

	// Pause waits before the next attempt. Default clock.Sleep.
	Pause func(context.Context, time.Duration) error
}

// Update is a response of the control plane.
type Update struct {
	Version  string
	Config   *envoyconfig.Config // in force now; nil if there was none yet
	Warnings rule.Problems       // if this one came into force
	Err      error               // why it did not
}

// State is how the client fares.
type State struct {
	Connected bool
	Version   string // in force; "" if there is none, or if it was restored
	Accepted  uint64 // responses
	Rejected  uint64
}

// Client is a subscription. It is safe for concurrent use.
type Client struct {
	options Options
	node    *corev3.Node

	config atomic.Pointer[envoyconfig.Config]

	mu    sync.Mutex
	state State
	last  []byte // the response that is in force

	// Of Run alone, and of Restore before it.
	inForce  digest
	rejected digest // if why is not nil
	why      error
}

// New returns a client that has not connected yet.
func New(o Options) (*Client, error) {
	if _, _, err := net.SplitHostPort(o.Server); err != nil {
		return nil, fmt.Errorf("envoyxds: %q is not an address; write host:port, as in localhost:18000", o.Server)
	}
	if o.TLS != nil {
		if _, err := o.TLS(); err != nil {
			return nil, fmt.Errorf("envoyxds: %w", err)
		}
	}
	if _, err := readHeaders(o.HeaderFile); err != nil {
		return nil, err
	}
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if o.Pause == nil {
		o.Pause = clock.Sleep
	}
	if o.Changed == nil {
		o.Changed = func(Update) {}
	}
	fields := make(map[string]*structpb.Value, len(o.NodeMetadata))
	for name, value := range o.NodeMetadata {
		fields[name] = structpb.NewStringValue(value)
	}
	return &Client{options: o, node: &corev3.Node{
		Id: cmp.Or(o.NodeID, "default"), Metadata: &structpb.Struct{Fields: fields}, UserAgentName: "weir",
	}}, nil
}

// Config returns the configuration in force, or nil if none has come yet.
func (c *Client) Config() *envoyconfig.Config { return c.config.Load() }

// State returns how the client fares.
func (c *Client) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// Run follows the control plane until the context ends.
func (c *Client) Run(ctx context.Context) {
	var wait delay
	told := ""
	for {
		err := c.session(ctx, &wait, func() {
			told = ""
			c.options.Logger.Info("connected to the xDS server", "xds", c.options.Server, "node", c.node.Id)
		})
		c.setConnected(false)
		if ctx.Err() != nil {
			return
		}
		pause := wait.next()
		if text := withoutDigits(err.Error()); text != told {
			told = text
			c.options.Logger.Warn("the xDS server is unavailable; weir keeps its configuration and tries again", "xds", c.options.Server, "retry_in", pause, "error", err)
		}
		if c.options.Pause(ctx, pause) != nil {
			return
		}
	}
}

// withoutDigits is an error without what differs each time: ports of this machine.
func withoutDigits(text string) string {
	return strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' {
			return -1
		}
		return c
	}, text)
}

func (c *Client) setConnected(connected bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.Connected = connected
}

// delay is how long to wait before the next attempt: from one second, doubled each time,
// to half a minute, give or take a fifth.
type delay struct{ attempts int }

const maxDelay = 30 * time.Second

// breath is between two responses, so that a control plane that sends one after the other
// fills neither the processor nor the log.
const breath = 100 * time.Millisecond

func (d *delay) next() time.Duration {
	pause := min(maxDelay, time.Second<<min(d.attempts, 5))
	d.attempts++
	return clock.Jitter(pause)
}

// session is one connection. It ends with an error.
func (c *Client) session(ctx context.Context, wait *delay, connected func()) error {
	headers, err := readHeaders(c.options.HeaderFile)
	if err != nil {
		return err
	}
	conn, err := c.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(ctx, headers))
	defer cancel()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
		discoveryv3.AggregatedDiscoveryService_StreamAggregatedResources_FullMethodName,
		grpc.ForceCodecV2(codec{}), grpc.MaxCallRecvMsgSize(MaxBytes))
	if err != nil {
		return err
	}
	// Without a version, although one may be in force: a control plane that was restarted
	// may count its versions from the beginning, and would believe that nothing has changed.
	request := &discoveryv3.DiscoveryRequest{Node: c.node, TypeUrl: TypeURL}
	c.setConnected(true)
	connected()
	if err := stream.SendMsg(request); err != nil {
		return streamError(stream, err)
	}
	var again delay
	for {
		var data []byte
		if err := stream.RecvMsg(&data); err != nil {
			return err
		}
		r, err := parse(data)
		if err != nil {
			return err
		}
		*wait = delay{}
		repeated, err := c.take(r, data)
		if !repeated {
			again = delay{}
		} else if err := c.options.Pause(ctx, again.next()); err != nil {
			// Some control planes answer a rejection with the same response at once.
			return err
		}
		if err := stream.SendMsg(c.answer(r, err)); err != nil {
			return streamError(stream, err)
		}
		if err := c.options.Pause(ctx, breath); err != nil {
			return err
		}
	}
}

// streamError is why a stream has ended on which nothing can be sent.
func streamError(stream grpc.ClientStream, err error) error {
	var data []byte
	if why := stream.RecvMsg(&data); why != nil {
		return why
	}
	return err
}

// answer accepts a response, or rejects it with the reason.
func (c *Client) answer(r *response, err error) *discoveryv3.DiscoveryRequest {
	request := &discoveryv3.DiscoveryRequest{Node: c.node, TypeUrl: TypeURL, ResponseNonce: r.nonce, VersionInfo: c.State().Version}
	if err != nil {
		request.ErrorDetail = &rpcstatus.Status{Code: int32(codes.InvalidArgument), Message: detail(err)}
	}
	return request
}

func (c *Client) dial() (*grpc.ClientConn, error) {
	creds := insecure.NewCredentials()
	if c.options.TLS != nil {
		config, err := c.options.TLS()
		if err != nil {
			return nil, err
		}
		creds = credentials.NewTLS(config)
	}
	return grpc.NewClient("passthrough:///"+c.options.Server,
		grpc.WithTransportCredentials(creds),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: 10 * time.Second}),
		// A server that has vanished is noticed. Servers of gRPC take offence at pings that
		// come more often than every five minutes.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 5*time.Minute + 10*time.Second, Timeout: 20 * time.Second}))
}

const maxHeaders = 64 << 10 // bytes of the file

// headerLine is a name and a value as gRPC takes them.
var headerLine = regexp.MustCompile(`^([A-Za-z0-9_.-]+):[ \t]*([ -~]*)$`)

// readHeaders reads a file of headers. Errors have no value, which may be a secret.
func readHeaders(path string) (metadata.MD, error) {
	if path == "" {
		return nil, nil
	}
	text, err := disk.ReadFile(path, maxHeaders, "header file")
	if err != nil {
		return nil, fmt.Errorf("envoyxds: %w", err)
	}
	headers := metadata.MD{}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		m := headerLine.FindStringSubmatch(line)
		if m == nil || strings.HasPrefix(strings.ToLower(m[1]), "grpc-") {
			return nil, fmt.Errorf("envoyxds: %s:%d: this is not a header; write a name, a colon and a value, as in authorization: Bearer …", path, number)
		}
		headers.Append(m[1], m[2])
	}
	return headers, nil
}
