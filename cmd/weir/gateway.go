package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/app"
	"github.com/weirhq/weir/internal/gateway"
)

func newGateway() *cobra.Command {
	f := &serverFlags{}
	g := &app.Gateway{}
	var upstreams []string
	cmd := &cobra.Command{
		Use:   "gateway --upstream URL",
		Short: "Pass on the requests that may pass",
		Long: `Pass on the requests that may pass, and answer the others, until told to stop.

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
				return usage("a gateway needs to know where to pass requests on; name it with --upstream http://127.0.0.1:9000")
			}
			for _, text := range upstreams {
				route, err := gateway.ParseRoute(text)
				if err != nil {
					return usage("--upstream: %w", err)
				}
				g.Routes = append(g.Routes, route)
			}
			o.Gateway = g
			return f.serve(cmd, o)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&upstreams, "upstream", nil, "where to pass requests on: `[HOST][/PATH=]URL[,URL…]`; may be repeated")
	flags.StringVar(&g.Listen, "listen", app.DefaultListen, "`address` at which requests come in")
	flags.StringVar(&g.TLS.CertFile, "listen-tls-cert", "", "certificate `file` for it, which is plain HTTP without")
	flags.StringVar(&g.TLS.KeyFile, "listen-tls-key", "", "its private key `file`")
	flags.StringVar(&g.Health.Path, "health-path", "", "`path` at which upstreams are asked for their health; without, they are unavailable when they cannot be reached")
	flags.DurationVar(&g.Health.Interval, "health-interval", 5*time.Second, "time between such questions")
	flags.DurationVar(&g.DialTimeout, "dial-timeout", 5*time.Second, "how long a connection to an upstream may take")
	flags.DurationVar(&g.HeaderTimeout, "header-timeout", time.Minute, "how long an upstream may take to begin its answer")
	flags.BoolVar(&g.RewriteHost, "rewrite-host", false, "send the upstream's name as Host, instead of the one that was asked for")
	flags.Int64Var(&g.MaxBody, "max-body", 0, "largest body of a request, in `bytes`; 0 for any")
	flags.IntVar(&g.MaxDelayed, "max-delayed", 1000, "how many requests of shaping rules may wait at once")
	f.add(flags)
	return cmd
}
