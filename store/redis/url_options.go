package redis

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/notation"
)

var urlOptionNames = []string{
	"timeout", "dial_timeout", "prefix", "client_name", "password_file", "db",
	"sentinel_user", "sentinel_password", "sentinel_password_file",
	"tls_ca", "tls_cert", "tls_key", "tls_server_name", "tls_insecure",
}

// urlOptions are what follows the question mark, decoded, with the URL that they
// belong to. No option is empty.
type urlOptions struct {
	urlParts
	values map[string]string
}

func (u urlParts) options() (urlOptions, error) {
	o := urlOptions{u, make(map[string]string)}
	for pair := range strings.SplitSeq(u.query, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		if err := u.mayHave(name); err != nil {
			return o, err
		}
		// A plus is a plus here: keys in base64 are more common than spaces.
		value, err := url.PathUnescape(value)
		if err != nil {
			return o, fmt.Errorf("redis: the URL's option %s has a %% that encodes nothing; write it as %%25", name)
		}
		if value == "" {
			return o, fmt.Errorf("redis: the URL's option %s is empty; give it a value or leave it out", name)
		}
		if _, twice := o.values[name]; twice {
			return o, fmt.Errorf("redis: the URL has the option %s twice; leave one out", name)
		}
		o.values[name] = value
	}
	return o, nil
}

// mayHave rejects an option that is unknown or would have no effect. An unknown
// name is not quoted: it may be the rest of a password that has an & in it.
func (u urlParts) mayHave(name string) error {
	switch {
	case !slices.Contains(urlOptionNames, name):
		if near := notation.Nearest(name, urlOptionNames); near != "" {
			return fmt.Errorf("redis: the URL has an unknown option; did you mean %s?", near)
		}
		return fmt.Errorf("redis: the URL has an unknown option; valid options are %s; write an & inside a value as %%26", strings.Join(urlOptionNames, ", "))
	case strings.HasPrefix(name, "tls_") && !u.tls:
		if u.kind == toSocket {
			return fmt.Errorf("redis: the URL's option %s is for TLS, which a Unix socket does not use; remove it", name)
		}
		return fmt.Errorf("redis: the URL's option %s is for TLS; write %s", name, strings.Replace(u.right, "redis", "rediss", 1))
	case strings.HasPrefix(name, "sentinel_") && u.kind != toSentinel:
		return fmt.Errorf("redis: the URL's option %s is for sentinels; write %s, or leave it out", name, urlForms["redis+sentinel"].right)
	case name == "db" && u.kind == toCluster:
		return errors.New("redis: the URL's option db is not for a cluster, which has only database 0; leave it out")
	case name == "db" && u.kind != toSocket:
		return fmt.Errorf("redis: the URL's option db is for redis+unix://; put the database into the path, as in %s", u.right)
	}
	return nil
}

// apply puts the options where they belong.
func (o urlOptions) apply(c *Config) (err error) {
	c.Options.Prefix = o.values["prefix"]
	if c.Options.Timeout, err = o.timeout("timeout", 0); err != nil { // 0 is New's default
		return err
	}
	if c.Client.Dialer.Timeout, err = o.timeout("dial_timeout", defaultDialTimeout); err != nil {
		return err
	}
	if name, ok := o.values["client_name"]; ok {
		// Redis would reject it at the first connection.
		if strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return errors.New("redis: the URL's option client_name has a space or a character that is not ASCII; write client_name=weir")
		}
		c.Client.ClientName = name
	}
	if db, ok := o.values["db"]; ok {
		if c.Client.SelectDB, err = o.databaseOf(db); err != nil {
			return err
		}
	}
	if c.Client.Password, err = o.password("password_file", c.Client.Password); err != nil {
		return err
	}
	c.Client.Sentinel.Username = o.values["sentinel_user"]
	if c.Client.Sentinel.Password, err = o.password("sentinel_password_file", o.values["sentinel_password"]); err != nil {
		return err
	}
	if c.Client.Sentinel.Username != "" && c.Client.Sentinel.Password == "" {
		return errors.New("redis: the URL's option sentinel_user needs a password; add sentinel_password_file or sentinel_password")
	}
	if o.tls {
		c.Client.TLSConfig, err = o.tlsConfig()
	}
	return err
}

func (o urlOptions) timeout(name string, otherwise time.Duration) (time.Duration, error) {
	value, ok := o.values[name]
	if !ok {
		return otherwise, nil
	}
	d, err := notation.ParseDuration(value)
	if err != nil || d <= 0 || d > time.Minute {
		return 0, fmt.Errorf("redis: the URL's option %s%s is not a duration above 0 and up to 1m; write for example %s=50ms", name, quoteNumber(value), name)
	}
	return d, nil
}

// password reads the file that the option names, unless the password is known.
func (o urlOptions) password(name, known string) (string, error) {
	if o.values[name] == "" {
		return known, nil
	}
	if known != "" {
		return "", fmt.Errorf("redis: the URL has a %s besides its %s; leave one out", strings.TrimSuffix(name, "_file"), name)
	}
	text, err := o.file(name)
	if err != nil {
		return "", err
	}
	password := strings.TrimRight(string(text), "\r\n") // as editors and echo leave behind
	if password == "" {
		return "", fmt.Errorf("redis: the file of the URL's option %s is empty; put the password there", name)
	}
	return password, nil
}
