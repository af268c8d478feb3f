package main

import (
	"cmp"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/app"
	"github.com/weirhq/weir/internal/gateway"
	"github.com/weirhq/weir/internal/overload"
)

func newGateway() *cobra.Command {
	f := &serverFlags{}
	g := &app.Gateway{}
	var upstreams, adaptive []string
	var protection string
	cmd := &cobra.Command{
		Use:   "gateway --upstream route",
		Short: "Run a reverse proxy that applies the limits",
		Long: `Run a reverse proxy that applies the limits. It passes allowed requests on to your
services, and answers the others itself. It also offers the APIs of weir serve.

  weir gateway --upstream http://127.0.0.1:9000
  weir gateway --upstream /api=http://10.0.0.5:9000,http://10.0.0.6:9000 --upstream shop.example.com=http://10.0.0.7

` + settingsHelp,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.options(cmd)
			if err != nil {
				return err
			}
			if len(upstreams) == 0 {
				return usage("--upstream is required; write for example --upstream http://127.0.0.1:9000")
			}
			for _, text := range upstreams {
				route, err := gateway.ParseRoute(text)
				if err != nil {
					return badFlag("upstream", "gateway", err)
				}
				g.Routes = append(g.Routes, route)
			}
			if err := gateway.SetAdaptive(g.Routes, adaptive); err != nil {
				return badFlag("adaptive", "gateway", err)
			}
			if protection != "" {
				limits, err := overload.ParseLimits(protection)
				if err != nil {
					return usage("--protect: %w", err)
				}
				g.Protect = engine.Protect(limits)
			}
			g.StreamGrace = cmp.Or(g.StreamGrace, time.Nanosecond) // a written 0 is none, not the default
			o.Gateway = g
			return f.serve(cmd, o)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&upstreams, "upstream", nil, "`route` to an upstream: [[host][/path]=]url[,url…] (repeatable, required)")
	flags.StringArrayVar(&adaptive, "adaptive", nil, "`limits` of the requests in flight to each upstream, which follow how many it can answer: [route=]min-max, for example 5-1000 (repeatable)")
	flags.StringVar(&protection, "protect", "", "`shares` of CPU and memory above which the gateway sheds requests, low priority first: cpu=85%,memory=90%")
	flags.StringVar(&g.Listen, "listen", app.DefaultListen, "listen `address` of the gateway")
	flags.StringVar(&g.TLS.CertFile, "listen-tls-cert", "", "TLS certificate `file` of the gateway; without it, the gateway uses plain HTTP")
	flags.StringVar(&g.TLS.KeyFile, "listen-tls-key", "", "TLS private key `file` of the gateway")
	flags.StringVar(&g.UpstreamCA, "upstream-tls-ca", "", "CA `file` that verifies the certificates of https upstreams (default the system's CAs)")
	flags.StringVar(&g.Health.Path, "health-path", "", "`path` of health checks; without it, the gateway sends none")
	flags.DurationVar(&g.Health.Interval, "health-interval", 5*time.Second, "time between health checks")
	flags.DurationVar(&g.DialTimeout, "dial-timeout", 5*time.Second, "how long weir waits for a connection to an upstream, including TLS")
	flags.DurationVar(&g.HeaderTimeout, "header-timeout", time.Minute, "how long weir waits for the start of the response, after it has sent the whole request")
	flags.BoolVar(&g.RewriteHost, "rewrite-host", false, "send the upstream's name as Host, instead of the Host of the request")
	flags.Int64Var(&g.MaxBody, "max-body", 0, "maximum size of a request body in `bytes`; 0 for no maximum")
	flags.DurationVar(&g.BodyTimeout, "body-timeout", 5*time.Minute, "how long a request body may take that a rule reads")
	flags.Int64Var(&g.BodyRate, "body-rate", 1024, "least `bytes` per second of a request body that a rule reads, after 10 s")
	flags.DurationVar(&g.StreamGrace, "stream-grace", app.DefaultStreamGrace, "how long weir waits on exit for streamed responses and WebSockets, if that is longer than --grace")
	flags.IntVar(&g.MaxDelayed, "max-delayed", 1000, "maximum `count` of requests that wait at the same time because of rules with shape or wait")
	f.addServerFlags(flags)
	return cmd
}
