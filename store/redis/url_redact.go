package redis

import "strings"

// redacted stands for what must not be seen.
const redacted = "***"

// Redact returns a URL for logs, with *** in place of its passwords. It accepts any text:
// what ParseURL does not accept, and whatever may be part of a password, is *** too.
func Redact(s string) string {
	u, err := splitURL(s)
	switch {
	case u.scheme == "":
		return redacted
	case err != nil:
		return u.scheme + "://" + redacted
	}
	shown := u.scheme + "://" + u.redactLogin()
	if _, err := u.target(); err != nil {
		return shown + redacted
	}
	shown += u.hosts
	if u.path != "" {
		shown += "/" + u.path
	}
	if u.query != "" {
		shown += "?" + u.redactQuery()
	}
	return shown
}

// redactLogin shows the user only if a password follows. Alone, as in
// "redis://secret@host", it is likely to be a password itself.
func (u urlParts) redactLogin() string {
	user, _, found := strings.Cut(u.login, ":")
	switch {
	case u.login == "":
		return ""
	case !found || !isPlain(user):
		return redacted + "@"
	}
	return user + ":" + redacted + "@"
}

// redactQuery shows the options up to the first that may be a password. Everything
// after it is hidden, too, because an unescaped & may be part of the password.
func (u urlParts) redactQuery() string {
	var shown []string
	for pair := range strings.SplitSeq(u.query, "&") {
		name, _, _ := strings.Cut(pair, "=")
		switch {
		case name == "sentinel_password":
			return strings.Join(append(shown, name+"="+redacted), "&")
		case pair != "" && u.mayHave(name) != nil:
			return strings.Join(append(shown, redacted), "&")
		case strings.HasSuffix(name, "password_file"):
			pair = name + "=" + redacted
		}
		shown = append(shown, pair)
	}
	return strings.Join(shown, "&")
}
