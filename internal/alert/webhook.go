package alert

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Headers of a webhook.
const (
	TimestampHeader = "Weir-Timestamp" // Unix seconds
	SignatureHeader = "Weir-Signature" // sha256= and the HMAC in hexadecimal
)

// Message is the body of a webhook.
type Message struct {
	Version  int       `json:"version"` // 1
	Alerts   []Alert   `json:"alerts"`  // empty in a message with warnings
	Warnings []Warning `json:"warnings,omitempty"`
	More     int64     `json:"more,omitempty"` // warnings of the same time that are not listed
}

// Webhook posts alerts as JSON.
type Webhook struct {
	poster
	secret []byte
}

// NewWebhook returns a notifier for a webhook. The secret signs every message, so that the
// receiver can verify it; see Verify. Without one, messages are not signed.
func NewWebhook(address string, secret []byte) (*Webhook, error) {
	p, err := newPoster("webhook", address)
	return &Webhook{p, secret}, err
}

// poster is what notifiers that post have in common.
type poster struct {
	url, name string
	client    *http.Client
	clock     func() time.Time
}

// newPoster checks the address. Its client follows no redirects: what is meant for one host
// is not for another.
func newPoster(kind, address string) (poster, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return poster{}, errors.New("alert: invalid URL; write it as https://host/path") // it may have a password
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return poster{address, kind + " " + u.Host, client, time.Now}, nil
}

// Name implements [Notifier]. It has no path, which may be a secret.
func (p *poster) Name() string { return p.name }

// Notify implements [Notifier].
func (w *Webhook) Notify(ctx context.Context, alerts []Alert) error {
	return w.send(ctx, Message{Version: 1, Alerts: alerts})
}

// signed are the headers of a message.
func (w *Webhook) signed(body []byte) http.Header {
	header := http.Header{}
	if len(w.secret) > 0 {
		at := strconv.FormatInt(w.clock().Unix(), 10)
		header.Set(TimestampHeader, at)
		header.Set(SignatureHeader, sign(w.secret, at, body))
	}
	return header
}

// sign also covers the time, so that an old message cannot be sent again.
func sign(secret []byte, at string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	io.WriteString(mac, at+".")
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// Verify checks a received webhook: it returns an error if the message was not signed
// with the secret, or is older than the tolerance.
func Verify(secret []byte, header http.Header, body []byte, now time.Time, tolerance time.Duration) error {
	at := header.Get(TimestampHeader)
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return errors.New("alert: the message is not signed")
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > tolerance || age < -tolerance {
		return fmt.Errorf("alert: the message is %v old; compare the clocks", age)
	}
	if !hmac.Equal([]byte(header.Get(SignatureHeader)), []byte(sign(secret, at, body))) {
		return errors.New("alert: the signature is wrong; compare the secrets")
	}
	return nil
}

// maxAnswer is how much of an answer is read, so that the connection can be used again.
const maxAnswer = 64 << 10

// post sends JSON. What the receiver will never take is a *PermanentError.
func (p *poster) post(ctx context.Context, header http.Header, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return &PermanentError{err}
	}
	req.Header = header
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "weir")
	resp, err := p.client.Do(req)
	if err != nil {
		return unwrapURL(err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return nil
	}
	err = fmt.Errorf("alert: the receiver returned %s: %s", resp.Status, clip(answer))
	switch {
	case resp.StatusCode >= 500, resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode == http.StatusRequestTimeout:
		return err
	}
	return &PermanentError{err}
}

// unwrapURL takes the URL out of an error: it may have a secret.
func unwrapURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return fmt.Errorf("alert: %w", err)
}

func clip(answer []byte) string {
	text := strings.ToValidUTF8(string(answer[:min(len(answer), 200)]), "?")
	return strings.Join(strings.Fields(text), " ")
}
