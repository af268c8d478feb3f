package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/server/httpapi"
)

// target is what is measured.
type target struct {
	name    string
	server  *client
	timeout time.Duration
	keys    int
	draws   []*rand.Rand // one for each worker

	// Of every request, for a client.
	method    string
	url, body template
	host      template
	header    map[string]template
	who       []template // what a client can be told by
	checks    bool       // rather than any other URL
}

// target makes what the flags say, with as many connections as there are callers.
func (f *benchFlags) target(cmd *cobra.Command) (*target, error) {
	server, err := f.connect(cmd)
	if err != nil {
		return nil, err
	}
	transport := server.http.Transport.(*http.Transport)
	transport.DisableKeepAlives, transport.DisableCompression = false, true
	transport.MaxConnsPerHost, transport.MaxIdleConnsPerHost, transport.MaxIdleConns = f.concurrency, f.concurrency, f.concurrency
	t := &target{server: server, timeout: f.timeout, keys: f.keys, header: map[string]template{}}
	for i := range f.concurrency {
		t.draws = append(t.draws, rand.New(rand.NewPCG(uint64(i), 1)))
	}
	if f.url != "" {
		t.name, t.method, t.url, t.host = f.url, f.Method, newTemplate(f.url), newTemplate(f.Host)
		for name, value := range f.Headers {
			t.header[name] = newTemplate(value)
			t.who = append(t.who, t.header[name])
		}
		return t, nil
	}
	t.checks, t.name, t.method = true, server.base.String(), http.MethodPost
	t.url = template{text: strings.TrimSuffix(t.name, "/") + "/v1/check"}
	req, err := f.checkRequest()
	if err != nil {
		return t, err
	}
	if req.IP == "" && req.User == "" && req.APIKey == "" {
		req.User, req.IP = "bench-{n}", "{ip}"
	}
	for _, n := range []int{0, f.keys - 1} { // as weir check would
		flags := f.requestFlags
		flags.IP, flags.Path = newTemplate(req.IP).of(n), newTemplate(req.Path).of(n)
		if _, err := flags.request(); err != nil {
			return t, err
		}
	}
	t.who = []template{newTemplate(req.IP), newTemplate(req.User), newTemplate(req.APIKey)}
	for _, values := range []map[string]string{req.Headers, req.Cookies, req.Query, req.Attributes} {
		for _, value := range values {
			t.who = append(t.who, newTemplate(value))
		}
	}
	body, err := json.Marshal(req) // braces, digits and dots stand for themselves
	t.body = newTemplate(string(body))
	return t, err
}

// clients is as how many clients the requests come.
func (t *target) clients() int {
	most := 1
	for _, value := range t.who {
		most = max(most, min(t.keys, value.values()))
	}
	return most
}

// connect returns a client of weir, or of whatever else is measured.
func (f *benchFlags) connect(cmd *cobra.Command) (*client, error) {
	if f.url == "" {
		return f.client(cmd)
	}
	if err := f.settle(cmd); err != nil {
		return nil, err
	}
	base, err := url.Parse(newTemplate(f.url).of(0))
	if err != nil {
		return nil, err
	}
	return f.clientOf(base)
}

// tryOnce sends one request, so that what goes wrong for all of them is told at once, and
// not counted for ten seconds. It charges nothing, if it is a check.
func (t *target) tryOnce(ctx context.Context) error {
	if !t.checks {
		_, err := t.send(ctx, 0, "")
		return err
	}
	var req httpapi.CheckRequest
	if err := json.Unmarshal([]byte(t.body.of(0)), &req); err != nil {
		return err
	}
	req.Peek = true
	_, err := t.server.ask(ctx, question{method: http.MethodPost, path: []string{"check"}, body: &req}, new(httpapi.CheckAnswer))
	return err
}

func (t *target) close() { t.server.http.CloseIdleConnections() }

// sendForAny sends a request for a client that is drawn by lot.
func (t *target) sendForAny(ctx context.Context, worker int) (string, error) {
	n := t.draws[worker].IntN(t.keys)
	body := ""
	if t.checks {
		body = t.body.of(n)
	}
	return t.send(ctx, n, body)
}

func (t *target) send(ctx context.Context, n int, body string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, t.method, t.url.of(n), strings.NewReader(body))
	if err != nil {
		return "", err
	}
	if t.checks && t.server.token != "" {
		req.Header.Set("Authorization", "Bearer "+t.server.token)
	}
	for name, value := range t.header {
		req.Header.Set(name, value.of(n))
	}
	if t.host.text != "" {
		req.Host = t.host.of(n)
	}
	resp, err := t.server.http.Do(req)
	if err != nil {
		return "", t.silent(err)
	}
	defer resp.Body.Close()
	if !t.checks {
		// All of it must be read for the connection to be used again.
		_, err := io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer))
		return fmt.Sprintf("status %d", resp.StatusCode), err
	}
	return verdictOf(resp)
}

// verdictOf reads the answer to a check.
func verdictOf(resp *http.Response) (string, error) {
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return "", err
	}
	var verdict struct {
		Allowed  *bool
		Degraded bool
		Detail   string // of a problem
	}
	if err := json.Unmarshal(answer, &verdict); err != nil || resp.StatusCode != http.StatusOK || verdict.Allowed == nil {
		return "", errors.New(strings.TrimSuffix(fmt.Sprintf("status %d: %s", resp.StatusCode, clause(verdict.Detail)), ": "))
	}
	outcome := "denied"
	if *verdict.Allowed {
		outcome = "allowed"
	}
	if verdict.Degraded {
		outcome += ", degraded"
	}
	return outcome, nil
}

// silent says why there was no answer.
func (t *target) silent(err error) error {
	if t.checks {
		return t.server.unreachable(err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s did not answer within %v", t.name, t.timeout)
	}
	return fmt.Errorf("%s cannot be reached: %s", t.name, cause(err))
}
