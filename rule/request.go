package rule

import "net/netip"

// Request is what is known of a request. What is not known is left out: a rule that
// would need it does not apply.
type Request struct {
	IP     netip.Addr // of the client, as far as it can be believed
	User   string
	APIKey string // in clear; it is hashed before it goes anywhere
	Tier   string

	// Method is compared in upper case, whatever the client wrote: some servers
	// take "post" for POST.
	Method string

	// Host may have a port, a final dot and capitals; none of them matters. See
	// [CanonicalHost] for how it is read.
	Host string

	// Path begins with a slash and has no query. It is escaped, as it was sent:
	// http.Request.URL.EscapedPath(), not URL.Path, in which an escaped slash can
	// no longer be told from a real one. See [CanonicalPath] for how it is read.
	Path string

	// Attributes are the application's own words, such as action: post. One that
	// is empty is not there.
	Attributes map[string]string

	// Values finds headers, cookies and query parameters. Nil has none.
	Values Values

	// Cost is what the request costs; 0 leaves that to each rule.
	Cost int64
}

// Values finds what a request carries besides. An implementation answers without
// allocating, and "" for what is not there. Header is asked for names as in
// http.CanonicalHeaderKey.
type Values interface {
	Header(name string) string
	Cookie(name string) string
	Query(name string) string
}
