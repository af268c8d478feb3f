package app

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/weirhq/weir/internal/build"
	"github.com/weirhq/weir/internal/server/respapi"
	"github.com/weirhq/weir/metrics"
	"github.com/weirhq/weir/rule"
)

// openRESP listens for Redis clients.
func (a *App) openRESP(ctx, _ context.Context) error {
	if a.options.RESP == Off {
		return nil
	}
	api, err := respapi.New(respapi.Options{Service: a.service(a.tokens.Load), Version: build.Read().Version})
	if err != nil {
		return err
	}
	a.resp.Store(api)
	serve := api.Serve
	if c := a.certs["--tls-cert"]; c != nil {
		serve = func(l net.Listener) error { return api.Serve(tls.NewListener(l, c.TLS())) }
	}
	return a.listen(ctx, "--resp", a.options.RESP, serve, api.Shutdown)
}

// installDemands tells the observers of limits that are not in the rules: those of Envoy's
// configuration, and those that Redis clients bring with them.
func (a *App) installDemands(envoy []*rule.Entry) {
	if a.options.RESP != Off {
		envoy = append(envoy, respapi.Rules()...)
	}
	a.engine.InstallDemands(envoy)
}

// respTraffic is what /metrics tells of Redis clients.
func (a *App) respTraffic() metrics.RESP {
	api := a.resp.Load()
	if api == nil {
		return metrics.RESP{} // it is not there yet
	}
	t := api.Traffic()
	m := metrics.RESP{Connections: t.Connected, Rejected: t.Rejected}
	for _, c := range t.Commands {
		m.Commands = append(m.Commands, metrics.Commands(c))
	}
	return m
}
