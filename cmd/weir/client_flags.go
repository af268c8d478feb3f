package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirhq/weir/internal/bearer"
	"github.com/weirhq/weir/internal/certs"
)

// clientFlags say which weir to talk to, and how.
type clientFlags struct {
	server, tokenFile string
	timeout           time.Duration
	ca, cert, key     string
	output            string
}

// clientVariables are the flags that the environment may set, where a flag does not.
var clientVariables = []string{"server", "token-file", "timeout", "ca", "cert", "key"}

// clientHelp is the end of a verb's help.
const clientHelp = `Environment variables: WEIR_SERVER, WEIR_TOKEN (the token itself), WEIR_TOKEN_FILE,
WEIR_TIMEOUT, WEIR_CA, WEIR_CERT and WEIR_KEY. Flags take precedence.`

// add adds the flags to a verb, after its own, and returns the verb.
func (f *clientFlags) add(cmd *cobra.Command) *cobra.Command {
	cmd.Long += "\n\n" + clientHelp
	flags := cmd.Flags()
	flags.SortFlags = false
	f.addConnection(flags)
	flags.StringVar(&f.tokenFile, "token-file", "", "`file` with the API token")
	flags.StringVar(&f.output, "output", "text", "output `format`: text or json")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// addConnection adds the flags that say how to reach a server.
func (f *clientFlags) addConnection(flags *pflag.FlagSet) {
	flags.StringVar(&f.server, "server", "http://127.0.0.1:8080", "`url` of the running weir")
	flags.DurationVar(&f.timeout, "timeout", 5*time.Second, "how long to wait for a response")
	flags.StringVar(&f.ca, "ca", "", "CA `file` that verifies the server's certificate (default the system's CAs)")
	flags.StringVar(&f.cert, "cert", "", "client certificate `file`")
	flags.StringVar(&f.key, "key", "", "private key `file` of the client certificate")
}

// settle takes from the environment what no flag says, and checks all of it.
func (f *clientFlags) settle(cmd *cobra.Command) error {
	for _, name := range clientVariables {
		value := os.Getenv(variable(name))
		if value == "" || cmd.Flags().Lookup(name) == nil || cmd.Flags().Changed(name) {
			continue
		}
		if err := cmd.Flags().Set(name, value); err != nil {
			return usage("%s: %q is invalid; write it as for --%s", variable(name), value, name)
		}
	}
	if err := oneOf("output", f.output, "text", "json"); err != nil {
		return err
	}
	if f.timeout <= 0 {
		return usage("--timeout: %v is not positive; write for example --timeout 5s", f.timeout)
	}
	if (f.cert == "") != (f.key == "") {
		return usage("--cert and --key must be set together")
	}
	return nil
}

// client returns a client of the server that the flags name.
func (f *clientFlags) client(cmd *cobra.Command) (*client, error) {
	if err := f.settle(cmd); err != nil {
		return nil, err
	}
	base, err := parseServer(f.server)
	if err != nil {
		return nil, err
	}
	return f.clientOf(base)
}

// clientOf returns a client of a server.
func (f *clientFlags) clientOf(base *url.URL) (c *client, err error) {
	if base.Scheme == "http" && (f.ca != "" || f.cert != "") {
		return nil, usage("--ca, --cert and --key need a server with https://, not %s", base)
	}
	c = &client{base: base, timeout: f.timeout, token: os.Getenv("WEIR_TOKEN")}
	if f.tokenFile != "" {
		if c.token, err = bearer.ReadOne(f.tokenFile); err != nil {
			return nil, err
		}
	}
	if strings.ContainsFunc(c.token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, usage("WEIR_TOKEN has characters that are not allowed in an HTTP header; set it to the token only")
	}
	config, err := f.tls()
	if err != nil {
		return nil, err
	}
	c.http = &http.Client{
		// Without HTTP/2, which would hide why a server does not let a client in.
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, DisableKeepAlives: true},
		// The token is for the server that was named, and for no other.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// ask asks the server that the flags name.
func (f *clientFlags) ask(cmd *cobra.Command, q question, into any) (*answer, error) {
	server, err := f.client(cmd)
	if err != nil {
		return nil, err
	}
	return server.ask(cmd.Context(), q, into)
}

// show asks a question and prints the answer: as it came with --output json, and otherwise
// by print. What was answered is returned.
func show[T any](f *clientFlags, cmd *cobra.Command, q question, print func(io.Writer, *T) error) (*T, error) {
	into := new(T)
	got, err := f.ask(cmd, q, into)
	switch {
	case err != nil:
		return nil, err
	case f.output == "json":
		return into, printJSON(cmd.OutOrStdout(), got.body)
	}
	return into, print(cmd.OutOrStdout(), into)
}

// parseServer reads the address of a server.
func parseServer(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		return nil, usage("--server: %q is not a URL; write http://%s", text, text)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, usage("--server: not the URL of a server; write for example http://127.0.0.1:8080")
	case u.User != nil:
		return nil, usage("--server: a user name and password are not supported; use a token, see --token-file")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, usage("--server: %q has a query or a fragment; write for example http://127.0.0.1:8080", text)
	}
	return u, nil
}

func (f *clientFlags) tls() (*tls.Config, error) {
	config, err := certs.Client{CAFile: f.ca, CertFile: f.cert, KeyFile: f.key}.TLS()
	if err != nil {
		return nil, usage("--ca, --cert, --key: %w", err)
	}
	return config, nil
}

// untrusted is whether a server's certificate is why nothing was sent to it.
func untrusted(err error) bool {
	return errors.As(err, new(x509.UnknownAuthorityError)) || errors.As(err, new(x509.HostnameError)) || errors.As(err, new(x509.CertificateInvalidError))
}

// cause is what is left of an error of net/http when all that is known is taken away.
func cause(err error) string {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if errors.Is(err, io.EOF) {
		return "the connection was closed"
	}
	return printable(err.Error())
}
