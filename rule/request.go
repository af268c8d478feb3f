package rule

import "net/netip"

// Request describes a request. Omit what is unknown; rules that need it do not apply.
type Request struct {
	IP     netip.Addr // of the client; it must be trustworthy
	User   string
	APIKey string // in clear text; it is hashed before it is stored or logged
	Tier   string

	// OtherUsers and OtherAPIKeys are further values, if the request has more than one
	// user or API key. Each is counted, because servers disagree about which one they
	// use; see [Hit.Identities].
	OtherUsers, OtherAPIKeys []string

	// Priority is how important the request is; it must be trustworthy. Default that of the
	// rules that apply to it, else Normal.
	Priority Priority

	// Method is compared in upper case, because some servers accept "post" for POST.
	Method string

	// Host may contain a port, a final dot and upper-case letters, which are ignored.
	// The name ends at the first colon, so an IPv6 address must be in brackets.
	Host string

	// Path begins with a slash and has no query. It is escaped, as it was sent: use
	// http.Request.URL.EscapedPath(), not URL.Path, which does not distinguish an
	// escaped slash from a real one. Dot segments, empty segments and unnecessary
	// escapes do not matter. A rule applies if it matches any way in which common
	// servers read the path.
	Path string

	// Attributes are defined by your application, such as action: post. An empty value
	// counts as absent.
	Attributes map[string]string

	// Values returns headers, cookies and query parameters. Nil means none.
	Values Values

	// Size is the length of the body in bytes; -1 if it is not known before it is read.
	Size int64

	// JSON returns the body of the request, or what it stands for, for expressions; it is empty
	// if there is none. It is called only if an expression reads it. A request whose body is not
	// JSON, or for which JSON fails, is denied; a [RequestError] says how. Nil means none.
	JSON func() ([]byte, error)

	// Unread is whether the body has not been read, so that Prompt, JSON and attributes from it are
	// not known. Rules that need them do not apply.
	Unread bool

	// Cost is the cost of the request; 0 for the cost that each rule defines.
	Cost int64

	// Costs are costs by the unit of a rule, at least 1 each. A rule whose unit is not among
	// them has the cost that it would have without Costs. A unit that no rule has is invalid.
	Costs map[string]int64

	// Permit reports whether the request may be charged under a rule and a key, as
	// [Entry.Identity] returns it, or ask about them. It must not keep the key. A rule that may
	// not be used fails the check; a shadow or soft one does not apply. Nil means any.
	Permit func(rule, key string) bool

	// Prompt describes a request to a language model, for rules that count tokens. Such rules
	// do not apply to an empty prompt. Nil means unknown.
	Prompt *Prompt
}

// Values returns headers, cookies and query parameters of a request. A name can have
// several values. Each method returns the first value at or after a position, and the
// position after it. An empty value counts as absent. Positions are defined by the
// implementation, except 0: as an argument it is the start, and as a result it means
// that there are no further values. Header gets names as in http.CanonicalHeaderKey,
// and the host only if Request.Host is empty. Implementations must not allocate.
type Values interface {
	Header(name string, from int) (value string, next int)
	Cookie(name string, from int) (value string, next int)
	Query(name string, from int) (value string, next int)
}

// Single implements a method of [Values] for at most one value; "" means none.
func Single(value string, from int) (string, int) {
	if from > 0 || value == "" {
		return "", 0
	}
	return value, 1
}

// Listed implements a method of [Values] for a list of values.
func Listed(values []string, from int) (string, int) {
	for i := from; i < len(values); i++ {
		if values[i] != "" {
			return values[i], i + 1
		}
	}
	return "", 0
}
