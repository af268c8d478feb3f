package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirhq/weir/internal/build"
	"github.com/weirhq/weir/internal/server/httpapi"
	"github.com/weirhq/weir/internal/trust"
)

// maxAnswer is the most that is read of an answer, in bytes. A document of rules is
// smaller, also as JSON.
const maxAnswer = 32 << 20

// client talks to a running weir.
type client struct {
	base    *url.URL
	token   string // "" if there is none
	timeout time.Duration
	http    *http.Client
}

// question is one call of the API.
type question struct {
	method string   // default GET
	path   []string // segments after /v1
	query  url.Values
	accept string // default application/json
	match  string // the version that it is about, as If-Match has it; "" if about none
	fresh  bool   // what it is about must not be there yet
	body   any    // sent as JSON, or as it is if it is bytes; nil for nothing
}

// given are the parameters that have a value.
func given(values map[string]string) url.Values {
	query := url.Values{}
	for name, value := range values {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
}

// answer is what came back, with a status of 200 to 299.
type answer struct {
	tag  string // the version that it is about, as ETag has it
	body []byte
}

// rejection is an answer that is a problem.
type rejection struct {
	httpapi.Problem
	server   *url.URL
	hadToken bool
}

// Error is the sentence of the problem, and how to do better from a command line.
func (r *rejection) Error() string {
	switch {
	case strings.HasSuffix(r.Type, ":no-rule"):
		return "there is no such rule; weir rules list shows all rules"
	case strings.HasSuffix(r.Type, ":no-version"):
		return "there is no such version, or it is no longer kept; weir rules history lists the versions"
	case strings.HasSuffix(r.Type, ":no-override"):
		return "there is no such override, or it is no longer kept; weir overrides --state all lists them"
	case strings.HasSuffix(r.Type, ":no-client"):
		return "there is no such client in the directory; weir clients list shows them, and weir clients set adds one"
	case r.Status == http.StatusUnauthorized && !r.hadToken:
		return fmt.Sprintf("%s requires a token; set --token-file or WEIR_TOKEN", r.server)
	case r.Status == http.StatusUnauthorized:
		return fmt.Sprintf("%s does not accept this token; check --token-file and WEIR_TOKEN", r.server)
	case r.Detail == "":
		return clause(r.Title)
	}
	return clause(r.Detail)
}

// clause is a sentence as part of another one, fit for a terminal.
func clause(sentence string) string {
	text := strings.TrimSuffix(printable(sentence), ".")
	if len(text) > 1 && text[0] >= 'A' && text[0] <= 'Z' && text[1] >= 'a' && text[1] <= 'z' {
		text = string(text[0]+'a'-'A') + text[1:]
	}
	return text
}

// ask sends a question. If the answer is JSON, it goes to into, unless that is nil.
func (c *client) ask(ctx context.Context, q question, into any) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	req, err := c.request(ctx, q)
	if err != nil {
		return nil, err
	}
	resp, body, err := c.exchange(req)
	if err != nil {
		return nil, err
	}
	if into != nil {
		if err := json.Unmarshal(body, into); err != nil {
			return nil, c.stranger(resp.StatusCode)
		}
	}
	return &answer{resp.Header.Get("ETag"), body}, nil
}

// fetch asks for a resource, whose path has slashes between its segments.
func (c *client) fetch(ctx context.Context, path string, query url.Values, into any) error {
	_, err := c.ask(ctx, question{path: strings.Split(path, "/"), query: query}, into)
	return err
}

// exchange sends a request, and returns the answer if its status is 200 to 299.
func (c *client) exchange(req *http.Request) (*http.Response, []byte, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, nil, c.unreachable(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, nil, c.unreachable(err)
	case len(body) > maxAnswer:
		return nil, nil, fmt.Errorf("the response of %s is larger than %d MiB, so it is not from weir; check --server", c.base, maxAnswer>>20)
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return nil, nil, c.rejected(resp, body)
	}
	return resp, body, nil
}

func (c *client) request(ctx context.Context, q question) (*http.Request, error) {
	target := *c.base
	path, escaped := strings.TrimSuffix(c.base.Path, "/")+"/v1", strings.TrimSuffix(c.base.EscapedPath(), "/")+"/v1"
	for _, segment := range q.path {
		path, escaped = path+"/"+segment, escaped+"/"+url.PathEscape(segment)
	}
	target.Path, target.RawPath, target.RawQuery = path, escaped, q.query.Encode()
	body, isRaw := q.body.([]byte)
	if q.body != nil && !isRaw {
		var err error
		if body, err = json.Marshal(q.body); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, q.method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	if q.accept != "" {
		req.Header.Set("Accept", q.accept)
	}
	if q.match != "" {
		req.Header.Set("If-Match", q.match)
	}
	if q.fresh {
		req.Header.Set("If-None-Match", "*")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	req.Header.Set("User-Agent", "weir/"+build.Read().Version)
	return req, nil
}

// errUsesTLS is for a server that was asked in plain HTTP.
var errUsesTLS = errors.New("uses TLS")

// rejected makes an error of an answer that is none of those hoped for.
func (c *client) rejected(resp *http.Response, body []byte) error {
	if resp.StatusCode == http.StatusBadRequest && strings.Contains(string(body), "HTTP request to an HTTPS server") {
		return fmt.Errorf("%s %w; write https:// in --server", c.base, errUsesTLS)
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	r := &rejection{server: c.base, hadToken: c.token != ""}
	if kind != "application/problem+json" || json.Unmarshal(body, &r.Problem) != nil {
		return c.stranger(resp.StatusCode)
	}
	r.Status = resp.StatusCode // whatever the body says
	return r
}

// stranger is for answers that weir does not give.
func (c *client) stranger(status int) error {
	return fmt.Errorf("%s answered with status %d, but the response is not from weir; check --server", c.base, status)
}

// unreachable says why there was no answer.
func (c *client) unreachable(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	var timeout interface{ Timeout() bool }
	switch text := err.Error(); {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("%s did not answer within %v; check that it is running, or wait longer with --timeout", c.base, c.timeout)
	case strings.Contains(text, "server gave HTTP response to HTTPS client"):
		return fmt.Errorf("%s does not use TLS; write http:// in --server", c.base)
	case untrusted(err):
		return fmt.Errorf("the certificate of %s is not trusted; give its CA with --ca: %s", c.base, cause(err))
	case strings.Contains(text, "remote error: tls:"):
		return fmt.Errorf("%s does not accept this client; give a client certificate with --cert and --key: %s", c.base, cause(err))
	}
	return fmt.Errorf("no weir at %s; start one with weir serve, or set --server: %s", c.base, cause(err))
}

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

// addClientFlags adds the flags to a verb, after its own, and returns the verb.
func (f *clientFlags) addClientFlags(cmd *cobra.Command) *cobra.Command {
	cmd.Long += "\n\n" + clientHelp
	flags := cmd.Flags()
	flags.SortFlags = false
	f.addConnection(flags)
	flags.StringVar(&f.tokenFile, "token-file", "", "`file` with the API token")
	addOutput(cmd, &f.output)
	return cmd
}

// addRule adds a flag with the id of a rule, which shells complete.
func (f *clientFlags) addRule(cmd *cobra.Command, id *string, text string) {
	cmd.Flags().StringVar(id, "rule", "", text)
	_ = cmd.RegisterFlagCompletionFunc("rule", completeRules(f))
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
		if c.token, err = trust.ReadToken(f.tokenFile); err != nil {
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

// show asks a question and prints the answer: as it came with --output json, and otherwise
// by print.
func show[T any](f *clientFlags, cmd *cobra.Command, q question, into *T, print func(*strings.Builder, *T)) error {
	server, err := f.client(cmd)
	if err != nil {
		return err
	}
	got, err := server.ask(cmd.Context(), q, into)
	if err != nil {
		return err
	}
	return f.print(cmd, got, func(b *strings.Builder) { print(b, into) })
}

// print prints an answer.
func (f *clientFlags) print(cmd *cobra.Command, got *answer, print func(*strings.Builder)) error {
	if f.output == "json" {
		return printJSON(cmd.OutOrStdout(), got.body)
	}
	var b strings.Builder
	print(&b)
	return say(cmd, "%s", b.String())
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
	config, err := trust.ClientCert{CAFile: f.ca, CertFile: f.cert, KeyFile: f.key}.TLS()
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
