package client

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/clientip"
)

// Failure selects the answer while the service is unavailable.
type Failure uint8

const (
	Open   Failure = iota // allow the request
	Closed                // deny the request
)

// Options configures a client.
type Options struct {
	// Address is host:port of the service, or unix:/path. Required. If the name
	// resolves to several addresses, the client uses them in turn. It never uses a
	// proxy, whatever the environment contains.
	Address string

	// TLS configures how to verify the service, and the client certificate. Default no
	// TLS.
	TLS *tls.Config

	// Token is sent with every call. If the service has tokens, checks require one with the
	// right check, Charge one with the right charge, and counters one with the right use.
	// Without TLS it is sent only to this machine. Default none.
	Token string

	// PlainToken sends the token without TLS to other machines, too, for private networks.
	// Default false.
	PlainToken bool

	// Timeout is the maximum duration of a call. Default 100 ms.
	Timeout time.Duration

	// OnFailure selects the answer while the service is unavailable. Default Open.
	OnFailure Failure

	// MaxInFlight is the maximum number of calls in flight. Further calls are answered
	// as if the service were unavailable. Default 1000.
	MaxInFlight int

	// Logger receives a record when the service becomes unavailable, and when it is
	// available again. Default slog.Default().
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	o.Timeout = cmp.Or(o.Timeout, 100*time.Millisecond)
	o.MaxInFlight = cmp.Or(o.MaxInFlight, 1000)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return o
}

func (o *Options) validate() error {
	switch {
	case o.Address == "":
		return errors.New("client: Options.Address is required; write host:port of the service, such as 127.0.0.1:8081")
	case !isSocket(o.Address) && !isHostPort(o.Address):
		return fmt.Errorf("client: Options.Address is %q; write host:port, such as 127.0.0.1:8081, or unix:/path", o.Address)
	case o.Timeout < 0:
		return fmt.Errorf("client: Options.Timeout is %v; write a positive duration, or 0 for the default of 100 ms", o.Timeout)
	case o.OnFailure > Closed:
		return fmt.Errorf("client: Options.OnFailure is %d; write Open or Closed", o.OnFailure)
	case o.MaxInFlight < 0:
		return fmt.Errorf("client: Options.MaxInFlight is %d; write a positive number, or 0 for the default of 1000", o.MaxInFlight)
	case strings.ContainsFunc(o.Token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("client: Options.Token has characters that are not valid in metadata; check for spaces and line ends around it")
	case o.Token != "" && o.TLS == nil && !o.PlainToken && !isSocket(o.Address) && !clientip.IsLoopback(o.Address):
		return errors.New("client: Options.Token would be sent in clear text; set TLS, or PlainToken in a private network")
	}
	return nil
}

func isSocket(address string) bool { return strings.HasPrefix(address, "unix:") }

func isHostPort(address string) bool {
	host, port, err := net.SplitHostPort(address)
	return err == nil && host != "" && port != "" && !strings.Contains(address, "/")
}
