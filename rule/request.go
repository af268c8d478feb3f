package rule

import "net/netip"

// Request is what is known of a request. What is not known is left out: a rule that
// would need it does not apply.
type Request struct {
	IP     netip.Addr // of the client, as far as it can be believed
	User   string
	APIKey string // in clear; it is hashed before it goes anywhere
	Tier   string

	// OtherUsers and OtherAPIKeys are what the request says besides User and APIKey, if
	// it says so more than once. Nobody knows which one a server will take, so each is
	// counted; see [Entry.Identities].
	OtherUsers, OtherAPIKeys []string

	// Method is compared in upper case, whatever the client wrote: some servers
	// take "post" for POST.
	Method string

	// Host may have a port, a final dot and capitals; none of them matters. The
	// name ends at the first colon, so an IPv6 address must be in brackets.
	Host string

	// Path begins with a slash and has no query. It is escaped, as it was sent:
	// http.Request.URL.EscapedPath(), not URL.Path, in which an escaped slash can
	// no longer be told from a real one. Dot segments, empty segments and needless
	// escapes do not matter, and a rule applies if it matches any way in which common
	// servers read the path.
	Path string

	// Attributes are the application's own words, such as action: post. One that
	// is empty is not there.
	Attributes map[string]string

	// Values finds headers, cookies and query parameters. Nil has none.
	Values Values

	// Cost is what the request costs; 0 leaves that to each rule.
	Cost int64
}

// Values finds what a request carries besides. There may be several values of a name:
// each method returns the first one that begins at a place or behind it, and the place
// behind that value. An empty value is none. Places are the implementation's own, but
// for 0, which is the beginning as an argument, and as a result says that there is no
// further value. Header is asked for names as in http.CanonicalHeaderKey; for the host
// only if Request.Host is empty. An implementation answers without allocating.
type Values interface {
	Header(name string, from int) (value string, next int)
	Cookie(name string, from int) (value string, next int)
	Query(name string, from int) (value string, next int)
}

// Single is what a method of [Values] returns where there is one value at most; "" is
// none.
func Single(value string, from int) (string, int) {
	if from > 0 || value == "" {
		return "", 0
	}
	return value, 1
}

// Listed is what a method of [Values] returns where the values are a list.
func Listed(values []string, from int) (string, int) {
	for i := from; i < len(values); i++ {
		if values[i] != "" {
			return values[i], i + 1
		}
	}
	return "", 0
}
