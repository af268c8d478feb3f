package redis

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/notation"
)

// Config is a parsed URL: how to reach Redis, and the options of the store.
type Config struct {
	Client  rueidis.ClientOption
	Options Options
}

// defaultDialTimeout is for connecting, and as much again for the greeting. The
// client's own default of 5 s is long to wait for a limiter.
const defaultDialTimeout = time.Second

// ParseURL parses
//
//	redis://[user[:password]@]host[:port][/database]
//	redis+sentinel://[user[:password]@]host[:port],…/master[/database]
//	redis+cluster://[user[:password]@]host[:port],…
//	redis+unix://[user[:password]@]/path/of/socket
//
// and the same with TLS: rediss://, rediss+sentinel:// and rediss+cluster://. Options
// follow a question mark, as in "redis://host?timeout=20ms&prefix=shop:":
//
//	timeout        of a check, up to 1m; default DefaultTimeout
//	dial_timeout   of connecting, up to 1m; default 1s
//	prefix         of every key; default DefaultPrefix
//	client_name    as CLIENT LIST shows it; default weir
//	password_file  file with the password, instead of the URL
//	db             database of redis+unix://; elsewhere it is in the path
//
//	sentinel_user, sentinel_password, sentinel_password_file
//	               for the sentinels; weir does not send them the password of Redis
//
//	tls_ca                file with trusted CA certificates; default the system's
//	tls_cert, tls_key     files with the client certificate and its key
//	tls_server_name       expected name in the certificate; default the host
//	tls_insecure=true     accepts any certificate
//
// In users, passwords and options, write the characters / ? # @ & % as %2F %3F %23 %40
// %26 %25. ParseURL reads the files. Errors contain no part of a password.
func ParseURL(s string) (Config, error) {
	u, err := splitURL(s)
	if err != nil {
		return Config{}, err
	}
	t, err := u.target()
	if err != nil {
		return Config{}, err
	}
	o, err := u.options()
	if err != nil {
		return Config{}, err
	}
	c := Config{Client: rueidis.ClientOption{
		InitAddress: t.addresses,
		SelectDB:    t.database,
		Username:    u.user,
		Password:    u.password,
		ClientName:  "weir",

		// A command that was sent twice was charged twice.
		DisableRetry: true,
		// Nothing that a limiter reads may be old.
		DisableCache: true,

		// One call is under way at a time, to each slot: more connections would
		// only be more to notice the loss of.
		PipelineMultiplex: -1,
		// Without it the client would ask the server whether it is a cluster,
		// and need it up to begin with.
		ForceSingleClient: u.kind == toServer || u.kind == toSocket,
		// Else the first seed greets every process there is.
		ShuffleInit: u.kind == toCluster,
	}}
	c.Client.Sentinel.MasterSet = t.master
	if u.kind == toSocket {
		c.Client.DialCtxFn = dial
	}
	if err := o.apply(&c); err != nil {
		return Config{}, err
	}
	// How long a connection may be silent before it is given up; no call can take longer.
	c.Client.ConnWriteTimeout = max(time.Second, c.Options.Timeout)
	if u.kind == toSentinel {
		followMaster(&c.Client)
	}
	return c, nil
}

// followMaster makes the client notice a failover by itself.
func followMaster(c *rueidis.ClientOption) {
	// A connection to a sentinel inherits nothing of this, and without a keep-alive
	// the client would not find out that a sentinel has vanished.
	c.Sentinel.Dialer.Timeout = c.Dialer.Timeout
	c.Sentinel.Dialer.KeepAlive = rueidis.DefaultTCPKeepAlive
	c.Sentinel.TLSConfig = c.TLSConfig
	c.Sentinel.ClientName = c.ClientName
	// A sentinel says only once that the master has changed. A client that misses
	// it would write to the old one for ever, so it asks now and then, too.
	c.Sentinel.TopologyRefreshInterval = 5 * time.Second
}

// urlKind is what there is at the other end.
type urlKind int

const (
	toServer urlKind = iota
	toSentinel
	toCluster
	toSocket
)

// urlForm is one way to write a URL.
type urlForm struct {
	kind  urlKind
	tls   bool
	right string // for errors to show
}

var urlForms = map[string]urlForm{
	"redis":           {toServer, false, "redis://host:6379/0"},
	"rediss":          {toServer, true, "rediss://host:6379/0"},
	"redis+sentinel":  {toSentinel, false, "redis+sentinel://host:26379,host:26379/master/0"},
	"rediss+sentinel": {toSentinel, true, "rediss+sentinel://host:26379,host:26379/master/0"},
	"redis+cluster":   {toCluster, false, "redis+cluster://host:6379,host:6379"},
	"rediss+cluster":  {toCluster, true, "rediss+cluster://host:6379,host:6379"},
	"redis+unix":      {toSocket, false, "redis+unix:///run/redis.sock?db=0"},
}

// reject returns an error that ends with the form that would be right.
func (f urlForm) reject(format string, args ...any) error {
	return fmt.Errorf("redis: the URL"+format+"; write %s", append(args, f.right)...)
}

// urlParts is a URL taken apart.
type urlParts struct {
	urlForm
	scheme         string
	login          string // user and password as written, up to the @
	user, password string
	hosts          string
	path           string // after the slash
	query          string
}

// splitURL takes a URL apart. Package net/url is of no use here: its errors quote the
// URL, and a password with an unescaped slash becomes a host and a path, which the next
// error would quote. Instead, everything up to the last @ may be part of a password. An
// ambiguous URL is rejected without quoting it; a wrong guess could send a password to
// a wrong host.
func splitURL(s string) (urlParts, error) {
	scheme, rest, found := strings.Cut(s, "://")
	if !found {
		return urlParts{}, errors.New("redis: the URL has no scheme; write redis://host:6379/0")
	}
	scheme = strings.ToLower(scheme)
	form, ok := urlForms[scheme]
	if !ok {
		return urlParts{}, unknownScheme(scheme)
	}
	u := urlParts{urlForm: form, scheme: scheme}
	if strings.ContainsFunc(rest, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return u, errors.New("redis: the URL has a space, a newline or another control character; remove it, or percent-encode it, as in %20 or %0A")
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		u.login, rest = rest[:at+1], rest[at+1:]
		user, password, _ := strings.Cut(u.login[:at], ":")
		var err, err2 error
		u.user, err = url.PathUnescape(user)
		u.password, err2 = url.PathUnescape(password)
		if strings.ContainsAny(u.login[:at], "/?#@") || err != nil || err2 != nil {
			return u, errors.New("redis: something before the URL's last @ needs percent-encoding; within a user, a password or an option write / as %2F, ? as %3F, # as %23, @ as %40 and % as %25")
		}
	}
	if strings.ContainsRune(rest, '#') {
		return u, errors.New("redis: the URL has a #, which ends it; within a user, a password or an option write %23")
	}
	rest, u.query, _ = strings.Cut(rest, "?")
	u.hosts, u.path, _ = strings.Cut(rest, "/")
	return u, nil
}

// unknownScheme does not quote it: when somebody forgot the scheme, a password
// may be in its place.
func unknownScheme(scheme string) error {
	names := slices.Sorted(maps.Keys(urlForms))
	if near := notation.Nearest(scheme, names); near != "" {
		return fmt.Errorf("redis: the URL's scheme is unknown; did you mean %s, as in %s?", near, urlForms[near].right)
	}
	return fmt.Errorf("redis: the URL's scheme is none of %s; write redis://host:6379/0", strings.Join(names, ", "))
}

// quoteNumber returns part in quotes with a space before them if it can only be a
// mistyped number. Anything longer may be a password at the wrong place, as in
// "redis://user:password" without a host, and is not repeated.
func quoteNumber(part string) string {
	if len(part) == 0 || len(part) > 5 || part[0] < '0' || part[0] > '9' {
		return ""
	}
	return fmt.Sprintf(" %q", part)
}
