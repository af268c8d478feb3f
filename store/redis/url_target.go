package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// urlTarget is where a URL points to.
type urlTarget struct {
	addresses []string
	master    string // as the sentinels call it
	database  int
}

func (u urlParts) target() (t urlTarget, err error) {
	if u.kind == toSocket {
		return u.socket()
	}
	if t.addresses, err = u.addresses(); err != nil {
		return urlTarget{}, err
	}
	database := u.path
	if u.kind == toSentinel {
		t.master, database, _ = strings.Cut(u.path, "/")
		// The sentinels themselves allow nothing else.
		if t.master == "" || !isPlain(t.master) {
			return urlTarget{}, u.reject(" needs the master's name after its hosts, of letters, digits, dots, dashes and underscores")
		}
	}
	if t.database, err = u.databaseOf(database); err != nil {
		return urlTarget{}, err
	}
	if u.kind == toCluster && t.database != 0 {
		return urlTarget{}, u.reject("'s database is not 0, the only one of a cluster")
	}
	return t, nil
}

// socket is the path of a Unix socket.
func (u urlParts) socket() (urlTarget, error) {
	path, err := url.PathUnescape(u.path)
	if u.hosts != "" || path == "" || err != nil {
		return urlTarget{}, u.reject(" needs a path and no host, so three slashes in a row")
	}
	return urlTarget{addresses: []string{"/" + path}}, nil
}

// dial connects to an address, or a path of a Unix socket.
func dial(ctx context.Context, to string, d *net.Dialer, config *tls.Config) (conn net.Conn, err error) {
	switch {
	case strings.HasPrefix(to, "/"):
		conn, err = d.DialContext(ctx, "unix", to)
	case config != nil:
		conn, err = (&tls.Dialer{NetDialer: d, Config: config}).DialContext(ctx, "tcp", to)
	default:
		conn, err = d.DialContext(ctx, "tcp", to)
	}
	if err != nil {
		return nil, err
	}
	return lastLook{conn}, nil
}

// lastLook is a connection on which an answer that has come is read although its deadline has passed:
// maybe this process did not run in between.
type lastLook struct{ net.Conn }

func (c lastLook) Read(to []byte) (int, error) {
	n, err := c.Conn.Read(to)
	if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		_ = c.Conn.SetReadDeadline(time.Now().Add(lookFor))
		n, err = c.Conn.Read(to)
	}
	return n, err
}

// lookFor is how long it takes at most to read what has come.
const lookFor = 100 * time.Microsecond

func (u urlParts) databaseOf(s string) (int, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return 0, u.reject("'s database%s is not a number", quoteNumber(s))
	}
	return int(n), nil
}

func (u urlParts) addresses() ([]string, error) {
	hosts := strings.Split(u.hosts, ",")
	if u.kind == toServer && len(hosts) > 1 {
		return nil, u.reject(" has several hosts, which is for %[1]s+cluster:// and %[1]s+sentinel://", u.scheme)
	}
	addresses := make([]string, len(hosts))
	for i, host := range hosts {
		var err error
		if addresses[i], err = u.address(host); err != nil {
			return nil, err
		}
	}
	return addresses, nil
}

// address reads host, host:port, [ip] or [ip]:port.
func (u urlParts) address(s string) (string, error) {
	host, port := s, "6379"
	if u.kind == toSentinel {
		port = "26379"
	}
	if colon := strings.LastIndexByte(s, ':'); colon > strings.LastIndexByte(s, ']') {
		host, port = s[:colon], s[colon+1:]
	}
	switch {
	case host == "":
		return "", u.reject(" has no host")
	case host[0] == '[':
		ip, closed := strings.CutSuffix(host[1:], "]")
		ip, err := url.PathUnescape(ip) // a zone is set off by %25
		if err != nil || !closed || !isIPv6(ip) {
			return "", u.reject(" has brackets that do not contain an IPv6 address, as in [::1]:6379")
		}
		host = ip
	case strings.ContainsRune(host, ':'):
		return "", u.reject(" has a host with two colons; an IPv6 address needs brackets like [::1]:6379, and a password needs an @ after it")
	case !isPlain(host):
		return "", u.reject("'s host has a character other than letters, digits, dots, dashes and underscores")
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		hint := ""
		if port != "" && quoteNumber(port) == "" && u.login == "" {
			hint = " (if it is a password, @ and a host are missing after it)"
		}
		return "", u.reject("'s port%s is not a number from 1 to 65535%s", quoteNumber(port), hint)
	}
	return net.JoinHostPort(host, strconv.FormatUint(n, 10)), nil
}

func isIPv6(s string) bool {
	ip, err := netip.ParseAddr(s)
	return err == nil && ip.Is6()
}

// isPlain reports whether s has only characters that mean nothing in a URL.
func isPlain(s string) bool {
	return strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_") == ""
}
