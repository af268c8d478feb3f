package redis

import (
	"net/url"
	"strings"
	"testing"
)

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"redis://host:6379/0?timeout=20ms&prefix=a": "redis://host:6379/0?timeout=20ms&prefix=a",
		"redis://[::1]:6379":                        "redis://[::1]:6379",
		"redis+cluster://a,b:7000":                  "redis+cluster://a,b:7000",
		"redis+unix:///run/redis.sock?db=1":         "redis+unix:///run/redis.sock?db=1",
		"redis://user:hunter2@host/1":               "redis://user:***@host/1",
		"redis://:hunter2@host":                     "redis://:***@host",
		"redis://:hunter2:hunter2@host":             "redis://:***@host",
		"redis://:hunter%32@host":                   "redis://:***@host",
		"redis://hunter2@host":                      "redis://***@host",
		"redis://hunter2%21:hunter2@host":           "redis://***@host",
		"redis://:@host":                            "redis://:***@host",

		"redis+sentinel://u:hunter2@a/m/1?prefix=x&sentinel_user=s&sentinel_password=hunter2&timeout=1s": "redis+sentinel://u:***@a/m/1?prefix=x&sentinel_user=s&sentinel_password=***",
		"redis+sentinel://a/m?sentinel_password=x&hunter2":                                               "redis+sentinel://a/m?sentinel_password=***",
		"redis+sentinel://a/m?sentinel_password=x#hunter2":                                               "redis+sentinel://***",
		"redis+sentinel://a/m?sentinel_password=x@hunter2":                                               "redis+sentinel://***",
		"redis://u@host?password_file=/run/secrets/hunter2&timeout=1s":                                   "redis://***@host?password_file=***&timeout=1s",
		"redis://host?password=hunter2&timeout=1s":                                                       "redis://host?***",
		"redis://host?hunter2":                   "redis://host?***",
		"redis://host?sentinel_password=hunter2": "redis://host?sentinel_password=***",
		"redis://host?&prefix=x&":                "redis://host?&prefix=x&",

		// What is no URL shows nothing.
		"":                               "***",
		"hunter2":                        "***",
		"user:hunter2@host":              "***",
		"hunter2://host":                 "***",
		"redis:/:hunter2@host":           "***",
		"redis://user:hunter2":           "redis://***",
		"redis://:hunter2":               "redis://***",
		"redis://hunter2:hunter2:6379":   "redis://***",
		"redis://user:1/hunter2":         "redis://***",
		"redis://u:p@host/hunter2":       "redis://u:***@***",
		"redis://a,hunter2":              "redis://***",
		"redis://:hunter2/x@host":        "redis://***",
		"redis://:x/hunter2@host":        "redis://***",
		"redis://:x?hunter2@host":        "redis://***",
		"redis://:hunter2@x@host":        "redis://***",
		"redis://:x@hunter2@host":        "redis://***",
		"redis://:hunter2%@host":         "redis://***",
		"redis://:hunter2 @host":         "redis://***",
		"redis://:hunter2@host\n":        "redis://***",
		"redis://:hunter2@host?prefix=@": "redis://***",
		"redis+unix://u:hunter2/x":       "redis+unix://***",
	} {
		got := Redact(in)
		if got != want {
			t.Errorf("Redact(%q) = %q; want %q", in, got, want)
		}
		if strings.Contains(got, "hunter2") {
			t.Errorf("Redact(%q) tells the password: %q", in, got)
		}
	}
}

// The ends of a secret; neither is part of any sentence of ours.
const secretHead, secretTail = "Hunter2", "2retnuH"

// passwordAt are URLs with a place for a password.
var passwordAt = []string{
	"redis://:PASSWORD@host:6379/0?prefix=x",
	"redis://user:PASSWORD@host",
	"redis://user:PASSWORD@host:bad/bad?bad=bad",
	"rediss://user:PASSWORD@host?tls_server_name=x@y",
	"redis+cluster://:PASSWORD@a:1,b:2",
	"redis+unix://:PASSWORD@/run/redis.sock",
	"redis+sentinel://user:PASSWORD@a/main/0?sentinel_password=other",
	"redis+sentinel://a:1,b:2/main/0?prefix=x&sentinel_password=PASSWORD",
	"redis+sentinel://a/main?sentinel_password=PASSWORD&timeout=1s",
	"rediss+sentinel://user:other@a/main?sentinel_user=u&sentinel_password=PASSWORD&bad=bad",
}

// checkSecrecy puts a password into every place, as it is, and looks for its ends:
// a part of a password is too much, too.
func checkSecrecy(t *testing.T, middle string) {
	t.Helper()
	for _, form := range passwordAt {
		in := strings.Replace(form, "PASSWORD", secretHead+middle+secretTail, 1)
		said := Redact(in)
		if _, err := ParseURL(in); err != nil {
			said += " " + err.Error()
		}
		if strings.Contains(said, secretHead) || strings.Contains(said, secretTail) {
			t.Errorf("%q: a password is in %q", in, said)
		}
	}
}

func TestURLKeepsPasswordsSecret(t *testing.T) {
	for _, middle := range []string{
		"", "/", "#", "?", "@", "%", "%zz", ":", "&", "=", "+", ",", " ", "\n", "\x00", "\xff", "[", "]", "//", "://", "@@", "@/", "/@", "?@", "@?",
		"@host:", "@host/", "@host:1/", "@host?", "@host?prefix=", "@host,", "@[", "/1/", ":1/", ":1/0?", "&timeout=", "&prefix=&", "&db=", "&tls_ca=", "&password_file=",
		"&sentinel_password=", "&sentinel_passw00", "@redis://:", "@host?sentinel_password=", "%40", "%2F", "\u2028", "ß",
	} {
		checkSecrecy(t, middle)
	}
}

func FuzzParseURL(f *testing.F) {
	f.Add("secret")
	f.Add("p@ss/wo?rd#%41&timeout=9")
	f.Add("@host:99999/1?prefix=")
	f.Add("redis+sentinel://a/b?sentinel_password=")
	f.Fuzz(func(t *testing.T, s string) {
		if strings.Contains(s, "_file=") || strings.Contains(s, "tls_") {
			t.Skip("reads files of any name, some of which never end")
		}
		_, _ = ParseURL(s)
		_ = Redact(s)
		checkSecrecy(t, s)

		// Encoded, any password arrives.
		password := secretHead + s + secretTail
		encoded := strings.ReplaceAll(url.QueryEscape(password), "+", "%20")
		for _, form := range passwordAt {
			c, err := ParseURL(strings.Replace(form, "PASSWORD", encoded, 1))
			if err == nil && c.Client.Password != password && c.Client.Sentinel.Password != password {
				t.Errorf("%q: the password %q arrives as %q", form, password, c.Client.Password)
			}
		}
	})
}
