package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/app"
	"github.com/weirhq/weir/internal/build"
	"github.com/weirhq/weir/internal/clientip"
)

func newHealth() *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Check whether a running weir is ready, for the probes of containers",
		Long: `Check whether a running weir is ready: it has loaded its configuration and is not stopping.
The command needs no token. In a container, it needs no shell and no curl.

The exit status is 0 if weir is ready and 1 if it is not, or does not answer.

Without --server and WEIR_SERVER, the address is that of weir serve in the same
environment: WEIR_HTTP, with https:// if WEIR_TLS_CERT is set, or if weir uses TLS.
On a loopback address, weir health does not verify the certificate, which is for another
name, unless --ca is set. If weir requires client certificates, set --cert and --key.

Environment variables: WEIR_SERVER, WEIR_TIMEOUT, WEIR_CA, WEIR_CERT and WEIR_KEY. Flags
take precedence.`,
		Example: `  weir health
  weir health --server http://127.0.0.1:9000 --timeout 1s`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.settle(cmd); err != nil {
				return err
			}
			isLocal := !cmd.Flags().Changed("server") // nor WEIR_SERVER set
			if isLocal {
				f.server = localServer(os.Getenv("WEIR_HTTP"), os.Getenv("WEIR_TLS_CERT")+f.ca+f.cert != "")
			}
			c, err := f.client(cmd)
			if err != nil {
				return err
			}
			c.token = ""
			if f.ca == "" && clientip.IsLoopback(c.base.Hostname()) {
				c.http.Transport.(*http.Transport).TLSClientConfig.InsecureSkipVerify = true
			}
			text, err := c.ready(cmd.Context())
			if errors.Is(err, errUsesTLS) && isLocal { // as a flag or a file of weir serve says, and not the environment
				c.base.Scheme = "https"
				text, err = c.ready(cmd.Context())
			}
			if err != nil {
				return err
			}
			return say(cmd, "%s", text)
		},
	}
	cmd.Flags().SortFlags = false
	f.addConnection(cmd.Flags())
	return cmd
}

// localServer is the URL of a weir that listens on an address, or on the default one. Of
// all interfaces, loopback is asked.
func localServer(address string, encrypted bool) string {
	u := url.URL{Scheme: "http", Host: app.DefaultHTTP}
	if encrypted {
		u.Scheme = "https"
	}
	if host, port, err := net.SplitHostPort(address); err == nil {
		switch host {
		case "", "0.0.0.0":
			host = "127.0.0.1"
		case "::":
			host = "::1"
		}
		u.Host = net.JoinHostPort(host, port)
	}
	return u.String()
}

// ready asks /readyz, and returns what it says.
func (c *client) ready(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base.JoinPath("readyz").String(), nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("User-Agent", "weir/"+build.Read().Version)
	resp, body, err := c.exchange(req)
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(string(body), "ready\n") {
		return "", c.stranger(resp.StatusCode)
	}
	return printableAll(string(body)), nil
}
