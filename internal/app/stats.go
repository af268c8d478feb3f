package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/alert"
	"github.com/weirhq/weir/internal/archiveredis"
	"github.com/weirhq/weir/internal/disk"
	"github.com/weirhq/weir/internal/gateway"
	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/stats/archive"
)

// Stats is what is remembered of what happened.
type Stats struct {
	// Off keeps no statistics, and so makes no alerts. Default false.
	Off bool

	// Keep says for how long. Default see there.
	Keep archive.Keep
}

// Alerts says when something is wrong, and whom to tell.
type Alerts struct {
	// Checks are what is looked at. Default alert.Defaults().
	Checks []alert.Check

	// Webhook is a URL to which alerts are posted. Default none.
	Webhook string

	// WebhookSecretFile has the secret by which messages are signed. Default none: they
	// are not signed.
	WebhookSecretFile string

	// Alertmanager is the URL of one that is told of alerts. Default none.
	Alertmanager string

	// Link is the URL of the dashboard, for people who read an alert. Default the
	// address of the API, as far as it is known.
	Link string
}

// openStats opens the archive and what writes to it.
func (a *App) openStats(_, background context.Context) error {
	if a.options.Stats.Off {
		return nil
	}
	kept, err := a.openArchive()
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("the host name of this machine is not available: %w", err)
	}
	a.recorder, err = stats.New(stats.Options{Archive: kept, Logger: a.options.Logger, Instance: a.instance(host)})
	if err != nil {
		return err
	}
	a.background.Go(func() { a.recorder.Run(background) }) // until the end, which is its error
	return a.openAlerts(background, host)
}

func (a *App) openArchive() (archive.Store, error) {
	if a.store.redis != nil {
		return archiveredis.Open(a.link(), archiveredis.Options{Keep: a.options.Stats.Keep, Prefix: a.store.config.Options.Prefix, Timeout: a.store.timeout(archiveredis.DefaultTimeout)})
	}
	m, err := archive.NewMemory(a.options.Stats.Keep)
	if err != nil {
		return nil, err
	}
	a.restoreAndKeep(kept{statsFile, "statistics", m.Snapshot, m.Restore})
	return m, nil
}

// instance is the name of this process in alerts and denials.
func (a *App) instance(host string) string { return host + " " + a.options.HTTP }

func (a *App) openAlerts(background context.Context, host string) error {
	notifiers, err := a.options.Alerts.notifiers()
	if err != nil {
		return err
	}
	dashboard, err := a.options.dashboard(host)
	if err != nil {
		return err
	}
	a.watcher, err = alert.New(alert.Options{
		Source: a.recorder, Checks: a.options.Alerts.Checks, Notifiers: notifiers, Logger: a.options.Logger,
		Instance: a.instance(host), Link: func(one alert.Alert) string { return alertLink(dashboard, one) },
	})
	if err != nil {
		return err
	}
	a.background.Go(func() { a.watcher.Run(background) })
	return nil
}

// dashboard is the URL of the dashboard, at the address of the API. If weir listens on
// all addresses, it has the name of the machine. It is "" if the port is not known yet.
func (o *Options) dashboard(host string) (string, error) {
	if o.Alerts.Link != "" {
		u, err := url.Parse(o.Alerts.Link)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return "", fmt.Errorf("--alert-link: %q is not a URL; write the URL of the dashboard, as in https://weir.example.com", o.Alerts.Link)
		}
		return strings.TrimRight(o.Alerts.Link, "/") + "/", nil
	}
	name, port, err := net.SplitHostPort(o.HTTP)
	if err != nil || port == "0" || port == "" {
		return "", nil
	}
	if ip, err := netip.ParseAddr(name); name == "" || err == nil && ip.IsUnspecified() {
		name = host
	}
	scheme := "http://"
	if o.TLS.CertFile != "" {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(name, port) + "/", nil
}

// beforeAlert is how much of the time before an alert its page shows.
const beforeAlert = 10 * time.Minute

// alertLink is the page of the dashboard that shows an alert in its time: the client, the
// rule, or everything.
func alertLink(dashboard string, a alert.Alert) string {
	if dashboard == "" {
		return ""
	}
	to := a.UpdatedAt
	if to.Before(a.EndsAt) {
		to = a.EndsAt
	}
	query := url.Values{"from": {unix(a.StartsAt.Add(-beforeAlert))}, "to": {unix(to)}}
	switch {
	case a.Kind == alert.Test:
		return dashboard + "#/alerts"
	case a.Kind == alert.HotKey:
		query.Set("key", a.Subject)
		if a.Rule != "" {
			query.Set("rule", a.Rule)
		}
		return dashboard + "#/clients?" + query.Encode()
	case a.Rule != "":
		return dashboard + "#/rules/view/" + url.PathEscape(a.Rule) + "?" + query.Encode()
	}
	return dashboard + "#/overview?" + query.Encode()
}

func unix(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

// notifiers are the receivers of alerts.
func (o *Alerts) notifiers() ([]alert.Notifier, error) {
	var all []alert.Notifier
	if o.WebhookSecretFile != "" && o.Webhook == "" {
		return nil, errors.New("--alert-webhook-secret-file requires --alert-webhook")
	}
	if o.Webhook != "" {
		secret, err := o.secret()
		if err != nil {
			return nil, err
		}
		webhook, err := alert.NewWebhook(o.Webhook, secret)
		if err != nil {
			return nil, fmt.Errorf("--alert-webhook: %w", err)
		}
		all = append(all, webhook)
	}
	if o.Alertmanager != "" {
		manager, err := alert.NewAlertmanager(o.Alertmanager)
		if err != nil {
			return nil, fmt.Errorf("--alertmanager: %w", err)
		}
		all = append(all, manager)
	}
	return all, nil
}

// maxSecret is the longest file with a secret, in bytes.
const maxSecret = 4 << 10

func (o *Alerts) secret() ([]byte, error) {
	if o.WebhookSecretFile == "" {
		return nil, nil
	}
	source, err := disk.ReadFile(o.WebhookSecretFile, maxSecret, "secret")
	if err != nil {
		return nil, fmt.Errorf("--alert-webhook-secret-file: %w", err)
	}
	secret := strings.TrimSpace(string(source))
	if len(secret) < 16 {
		return nil, fmt.Errorf("--alert-webhook-secret-file: the secret in %s has fewer than 16 characters and could be guessed; make one with: openssl rand -hex 32", o.WebhookSecretFile)
	}
	return []byte(secret), nil
}

// observeUpstream counts a request that the gateway has passed on.
func (a *App) observeUpstream(out gateway.Outcome) {
	if out.Upstream == "" {
		return
	}
	a.metrics.ObserveUpstream(out.Route, out.Upstream, out.Status, out.Err, out.Took)
	if a.recorder == nil {
		return
	}
	took := cmp.Or(out.Header, out.Took) // a download, or a WebSocket, may go on for hours
	a.recorder.ObserveUpstream(out.Route, out.Status, took, out.Err)
}
