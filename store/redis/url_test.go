package redis

import (
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

// urlSays is what a URL of a kind says when it says no more than hosts.
func urlSays(k urlKind, change func(*Config)) Config {
	c := Config{Client: rueidis.ClientOption{DisableRetry: true, DisableCache: true, ClientName: "weir", PipelineMultiplex: -1, ConnWriteTimeout: time.Second}}
	c.Client.Dialer.Timeout = time.Second
	c.Client.ForceSingleClient = k == toServer
	c.Client.ShuffleInit = k == toCluster
	if k == toSentinel {
		c.Client.Sentinel.Dialer.Timeout = time.Second
		c.Client.Sentinel.Dialer.KeepAlive = time.Second
		c.Client.Sentinel.ClientName = "weir"
		c.Client.Sentinel.TopologyRefreshInterval = 5 * time.Second
	}
	change(&c)
	return c
}

func TestParseURL(t *testing.T) {
	hosts := func(h ...string) func(*Config) { return func(c *Config) { c.Client.InitAddress = h } }
	login := func(user, password string) func(*Config) {
		return func(c *Config) {
			c.Client.InitAddress = []string{"host:6379"}
			c.Client.Username, c.Client.Password = user, password
		}
	}
	for url, want := range map[string]Config{
		"redis://host":                    urlSays(toServer, hosts("host:6379")),
		"REDIS://host/":                   urlSays(toServer, hosts("host:6379")),
		"redis://host?":                   urlSays(toServer, hosts("host:6379")),
		"redis://10.0.0.1:7000":           urlSays(toServer, hosts("10.0.0.1:7000")),
		"redis://a_b-c.example.:1":        urlSays(toServer, hosts("a_b-c.example.:1")),
		"redis://[::1]":                   urlSays(toServer, hosts("[::1]:6379")),
		"redis://[fe80::1%25eth0]:7000":   urlSays(toServer, hosts("[fe80::1%eth0]:7000")),
		"redis://@host":                   urlSays(toServer, login("", "")),
		"redis://:@host":                  urlSays(toServer, login("", "")),
		"redis://user@host":               urlSays(toServer, login("user", "")),
		"redis://:hunter2@host":           urlSays(toServer, login("", "hunter2")),
		"redis://user:hunter2@host":       urlSays(toServer, login("user", "hunter2")),
		"redis://user:a:b+c=!*@host":      urlSays(toServer, login("user", "a:b+c=!*")),
		"redis://u%3As:%2F%3F%23%40@host": urlSays(toServer, login("u:s", "/?#@")),
		"redis://host/3?timeout=20ms&dial_timeout=2s&prefix=shop%26co:&client_name=edge-1": urlSays(toServer, func(c *Config) {
			hosts("host:6379")(c)
			c.Client.SelectDB = 3
			c.Client.Dialer.Timeout = 2 * time.Second
			c.Client.ClientName = "edge-1"
			c.Options = Options{Prefix: "shop&co:", Timeout: 20 * time.Millisecond}
		}),
		"redis://host?timeout=1m&prefix=a+b": urlSays(toServer, func(c *Config) {
			hosts("host:6379")(c)
			c.Options = Options{Prefix: "a+b", Timeout: time.Minute}
			c.Client.ConnWriteTimeout = time.Minute
		}),
		"rediss://host?tls_server_name=redis.example&tls_insecure=true": urlSays(toServer, func(c *Config) {
			hosts("host:6379")(c)
			c.Client.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: "redis.example", InsecureSkipVerify: true}
		}),
		"redis+cluster://u:hunter2@a,b:7000,[::1]": urlSays(toCluster, func(c *Config) {
			hosts("a:6379", "b:7000", "[::1]:6379")(c)
			c.Client.Username, c.Client.Password = "u", "hunter2"
		}),
		"rediss+cluster://a/0": urlSays(toCluster, func(c *Config) {
			hosts("a:6379")(c)
			c.Client.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		}),
		"redis+sentinel://a,b:5000/main": urlSays(toSentinel, func(c *Config) {
			hosts("a:26379", "b:5000")(c)
			c.Client.Sentinel.MasterSet = "main"
		}),
		"rediss+sentinel://u:hunter2@a/main/2?sentinel_user=s&sentinel_password=other%26&dial_timeout=3s&client_name=x": urlSays(toSentinel, func(c *Config) {
			hosts("a:26379")(c)
			c.Client.SelectDB = 2
			c.Client.Username, c.Client.Password = "u", "hunter2"
			c.Client.Dialer.Timeout, c.Client.Sentinel.Dialer.Timeout = 3*time.Second, 3*time.Second
			c.Client.ClientName, c.Client.Sentinel.ClientName = "x", "x"
			c.Client.Sentinel.MasterSet = "main"
			c.Client.Sentinel.Username, c.Client.Sentinel.Password = "s", "other&"
			c.Client.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
			c.Client.Sentinel.TLSConfig = c.Client.TLSConfig
		}),
	} {
		got, err := ParseURL(url)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("ParseURL(%q) = %+v, %v; want %+v", url, got, err, want)
		}
	}
}

func TestURLIsRejected(t *testing.T) {
	const (
		encode  = "redis: something before the URL's last @ needs percent-encoding; within a user, a password or an option write / as %2F, ? as %3F, # as %23, @ as %40 and % as %25"
		space   = "redis: the URL has a space, a newline or another control character; remove it, or percent-encode it, as in %20 or %0A"
		name    = "redis: the URL needs the master's name after its hosts, of letters, digits, dots, dashes and underscores; write redis+sentinel://host:26379,host:26379/master/0"
		ipv6    = "redis: the URL has brackets that do not contain an IPv6 address, as in [::1]:6379; write redis://host:6379/0"
		socket  = "redis: the URL needs a path and no host, so three slashes in a row; write redis+unix:///run/redis.sock?db=0"
		unknown = "redis: the URL has an unknown option; valid options are timeout, dial_timeout, prefix, client_name, password_file, db, sentinel_user, sentinel_password, sentinel_password_file, tls_ca, tls_cert, tls_key, tls_server_name, tls_insecure; write an & inside a value as %26"
	)
	large, empty := filepath.Join(t.TempDir(), "large"), filepath.Join(t.TempDir(), "empty")
	if err := errors.Join(os.WriteFile(large, make([]byte, 1<<20+1), 0o600), os.WriteFile(empty, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]string{
		"":                     "redis: the URL has no scheme; write redis://host:6379/0",
		"localhost:6379":       "redis: the URL has no scheme; write redis://host:6379/0",
		"redis:/host":          "redis: the URL has no scheme; write redis://host:6379/0",
		"http://host":          "redis: the URL's scheme is none of redis, redis+cluster, redis+sentinel, redis+unix, rediss, rediss+cluster, rediss+sentinel; write redis://host:6379/0",
		"reddis://host":        "redis: the URL's scheme is unknown; did you mean redis, as in redis://host:6379/0?",
		"redis+sentinal://a/b": "redis: the URL's scheme is unknown; did you mean redis+sentinel, as in redis+sentinel://host:26379,host:26379/master/0?",
		"redis://host\n":       space,
		"redis://my host":      space,
		"redis://host#frag":    "redis: the URL has a #, which ends it; within a user, a password or an option write %23",

		"redis://:p/ss@host":            encode,
		"redis://:p?ss@host":            encode,
		"redis://:p#ss@host":            encode,
		"redis://:p@ss@host":            encode,
		"redis://:100%@host":            encode,
		"redis://1%:p@host":             encode,
		"redis://host?prefix=a@b":       encode,
		"redis+cluster://u:p@a,u:p@b":   encode,
		"redis://u:p@host/0?prefix=a@b": encode,

		"redis://":                "redis: the URL has no host; write redis://host:6379/0",
		"redis://u:p@":            "redis: the URL has no host; write redis://host:6379/0",
		"redis://:6379":           "redis: the URL has no host; write redis://host:6379/0",
		"redis+cluster://a,,b":    "redis: the URL has no host; write redis+cluster://host:6379,host:6379",
		"redis://a,b":             "redis: the URL has several hosts, which is for redis+cluster:// and redis+sentinel://; write redis://host:6379/0",
		"rediss://a,b":            "redis: the URL has several hosts, which is for rediss+cluster:// and rediss+sentinel://; write rediss://host:6379/0",
		"redis://ho%73t":          "redis: the URL's host has a character other than letters, digits, dots, dashes and underscores; write redis://host:6379/0",
		"redis://::1:6379":        "redis: the URL has a host with two colons; an IPv6 address needs brackets like [::1]:6379, and a password needs an @ after it; write redis://host:6379/0",
		"redis://[::1":            ipv6,
		"redis://[10.0.0.1]:6379": ipv6,
		"redis://[::1%zz]":        ipv6,
		"redis://host:6379x":      `redis: the URL's port "6379x" is not a number from 1 to 65535; write redis://host:6379/0`,
		"redis://host:0":          `redis: the URL's port "0" is not a number from 1 to 65535; write redis://host:6379/0`,
		"redis://host:65536":      `redis: the URL's port "65536" is not a number from 1 to 65535; write redis://host:6379/0`,
		"redis://host:":           "redis: the URL's port is not a number from 1 to 65535; write redis://host:6379/0",
		"redis://u:p@host:http":   "redis: the URL's port is not a number from 1 to 65535; write redis://host:6379/0",
		"redis://user:hunter2":    "redis: the URL's port is not a number from 1 to 65535 (if it is a password, @ and a host are missing after it); write redis://host:6379/0",

		"redis://host/1x":               `redis: the URL's database "1x" is not a number; write redis://host:6379/0`,
		"redis://host/-1":               "redis: the URL's database is not a number; write redis://host:6379/0",
		"redis://host/0/":               `redis: the URL's database "0/" is not a number; write redis://host:6379/0`,
		"redis://host/cache":            "redis: the URL's database is not a number; write redis://host:6379/0",
		"redis://host/4294967296":       "redis: the URL's database is not a number; write redis://host:6379/0",
		"redis+cluster://host/1":        "redis: the URL's database is not 0, the only one of a cluster; write redis+cluster://host:6379,host:6379",
		"redis+sentinel://a,b":          name,
		"redis+sentinel://a,b//0":       name,
		"redis+sentinel://a/my%20name":  name,
		"redis+sentinel://a/main/x":     "redis: the URL's database is not a number; write redis+sentinel://host:26379,host:26379/master/0",
		"redis+unix://host/redis.sock":  socket,
		"redis+unix:///":                socket,
		"redis+unix:///%zz":             socket,
		"redis+unix:///run/r.sock?db=x": "redis: the URL's database is not a number; write redis+unix:///run/redis.sock?db=0",

		"redis://host?tiemout=1s":        "redis: the URL has an unknown option; did you mean timeout?",
		"redis://host?hunter2":           unknown,
		"redis://host?timeout":           "redis: the URL's option timeout is empty; give it a value or leave it out",
		"redis://host?prefix=":           "redis: the URL's option prefix is empty; give it a value or leave it out",
		"redis://host?prefix=100%":       "redis: the URL's option prefix has a % that encodes nothing; write it as %25",
		"redis://host?prefix=a&prefix=a": "redis: the URL has the option prefix twice; leave one out",
		"redis://host?timeout=50":        `redis: the URL's option timeout "50" is not a duration above 0 and up to 1m; write for example timeout=50ms`,
		"redis://host?timeout=0s":        `redis: the URL's option timeout "0s" is not a duration above 0 and up to 1m; write for example timeout=50ms`,
		"redis://host?timeout=-1s":       "redis: the URL's option timeout is not a duration above 0 and up to 1m; write for example timeout=50ms",
		"redis://host?dial_timeout=61s":  `redis: the URL's option dial_timeout "61s" is not a duration above 0 and up to 1m; write for example dial_timeout=50ms`,
		"redis://host?client_name=a%20b": "redis: the URL's option client_name has a space or a character that is not ASCII; write client_name=weir",
		"redis://host?db=1":              "redis: the URL's option db is for redis+unix://; put the database into the path, as in redis://host:6379/0",
		"redis+cluster://host?db=1":      "redis: the URL's option db is not for a cluster, which has only database 0; leave it out",

		"redis://host?tls_insecure=true":           "redis: the URL's option tls_insecure is for TLS; write rediss://host:6379/0",
		"redis+cluster://a?tls_ca=x":               "redis: the URL's option tls_ca is for TLS; write rediss+cluster://host:6379,host:6379",
		"redis+unix:///x?tls_ca=x":                 "redis: the URL's option tls_ca is for TLS, which a Unix socket does not use; remove it",
		"rediss://host?tls_insecure=1":             "redis: the URL's option tls_insecure is not true; write tls_insecure=true or leave it out",
		"rediss://host?tls_insecure=true&tls_ca=x": "redis: the URL has both tls_ca and tls_insecure, which ignores tls_ca; remove one",
		"rediss://host?tls_cert=x":                 "redis: the URL has only one of tls_cert and tls_key; add the other",
		"rediss://host?tls_key=x":                  "redis: the URL has only one of tls_cert and tls_key; add the other",
		"rediss://host?tls_ca=testdata/none":       "redis: the file of the URL's option tls_ca cannot be read (no such file or directory); write its whole path",
		"redis://host?password_file=hunter2":       "redis: the file of the URL's option password_file cannot be read (no such file or directory); write its whole path",
		"redis://host?password_file=.":             "redis: the file of the URL's option password_file cannot be read (is a directory); write its whole path",
		"redis://host?password_file=/dev/zero":     "redis: the file of the URL's option password_file cannot be read (it is not a regular file); write its whole path",
		"redis://host?password_file=" + large:      "redis: the file of the URL's option password_file is larger than 1 MiB; name another",
		"redis://host?password_file=" + empty:      "redis: the file of the URL's option password_file is empty; put the password there",
		"redis://:hunter2@host?password_file=x":    "redis: the URL has a password besides its password_file; leave one out",
		"redis://host?sentinel_user=u":             "redis: the URL's option sentinel_user is for sentinels; write redis+sentinel://host:26379,host:26379/master/0, or leave it out",
		"redis+sentinel://a/m?sentinel_user=u":     "redis: the URL's option sentinel_user needs a password; add sentinel_password_file or sentinel_password",

		"redis+sentinel://a/m?sentinel_password=hunter2&sentinel_password_file=x": "redis: the URL has a sentinel_password besides its sentinel_password_file; leave one out",
	} {
		got, err := ParseURL(url)
		if err == nil || err.Error() != want {
			t.Errorf("ParseURL(%q):\n got %v\nwant %s", url, err, want)
		}
		if !reflect.DeepEqual(got, Config{}) {
			t.Errorf("ParseURL(%q) = %+v along with an error", url, got)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("ParseURL(%q) tells the password: %v", url, err)
		}
	}
}
