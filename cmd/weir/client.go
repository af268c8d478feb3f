package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/build"
	"github.com/weirhq/weir/internal/server/httpapi"
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
	method string
	path   []string // segments after /v1
	query  url.Values
	accept string // default application/json
	match  string // the version that it is about, as If-Match has it; "" if about none
	body   any    // sent as JSON, or as it is if it is bytes; nil for nothing
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
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, c.unreachable(err)
	}
	if len(body) > maxAnswer {
		return nil, fmt.Errorf("the response of %s is larger than %d MiB, so it is not from weir; check --server", c.base, maxAnswer>>20)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, c.rejected(resp, body)
	}
	if into != nil {
		if err := json.Unmarshal(body, into); err != nil {
			return nil, c.stranger(resp.StatusCode)
		}
	}
	return &answer{resp.Header.Get("ETag"), body}, nil
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
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	req.Header.Set("User-Agent", "weir/"+build.Read().Version)
	return req, nil
}

// rejected makes an error of an answer that is none of those hoped for.
func (c *client) rejected(resp *http.Response, body []byte) error {
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
