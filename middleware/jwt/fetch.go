package jwt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// Bounds on the answers of issuers.
const (
	maxBody   = 1 << 20
	maxHeader = 64 << 10
	patience  = 5 * time.Second // for one answer
)

// source fetches keys. The configuration says where issuers are. An issuer only says where its keys are,
// and that may be anywhere but on this machine or its link, where metadata services are, unless the
// issuer is there itself.
type source struct{ own, foreign *http.Client }

func newSource() *source {
	return &source{own: newClient(nil), foreign: newClient(notHere)}
}

func newClient(control func(network, address string, c syscall.RawConn) error) *http.Client {
	return &http.Client{
		Timeout: patience,
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: patience, Control: control}).DialContext,
			DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeader, ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirect },
	}
}

var errRedirect = errors.New("it redirects, which is not followed; write the final URL")

// notHere rejects connections to this machine and its link.
func notHere(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if ip := at.Addr().Unmap(); err != nil || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() || ip.IsMulticast() {
		return errors.New("the issuer says that its keys are on this machine or its link; set jwks if that is right")
	}
	return nil
}

// fetch returns the key set of an issuer as a text.
func (s *source) fetch(ctx context.Context, i *issuer) ([]byte, error) {
	if i.at != nil {
		return get(ctx, s.own, i.at.String())
	}
	text, err := get(ctx, s.own, strings.TrimSuffix(i.URL, "/")+"/.well-known/openid-configuration")
	if err != nil {
		return nil, err
	}
	var told struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := json.Unmarshal(text, &told); err != nil {
		return nil, errors.New("its configuration is not JSON")
	}
	if told.Issuer != i.URL {
		return nil, errors.New("its configuration is that of another issuer; write the issuer exactly as it does")
	}
	at, err := parseURL(told.Keys)
	if err != nil {
		return nil, fmt.Errorf("jwks_uri: %w", err)
	}
	client := s.foreign
	if own, err := url.Parse(i.URL); err == nil && own.Scheme == at.Scheme && own.Host == at.Host {
		client = s.own
	}
	return get(ctx, client, at.String())
}

func get(ctx context.Context, client *http.Client, from string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers with the status %d", from, resp.StatusCode)
	}
	text, err := bounded(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	return text, nil
}

// bounded reads all, if it is not too much.
func bounded(from io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, maxBody+1))
	if err == nil && len(text) > maxBody {
		err = fmt.Errorf("it has more than %d bytes", maxBody)
	}
	return text, err
}
