package client

import (
	"net/netip"

	pb "github.com/weirhq/weir/proto/weir/v1"
)

// Request is what is known of a request. What is left out is not known, and a rule that
// would need it does not apply. The service takes at most 64 KiB of it.
type Request struct {
	IP     netip.Addr // of the client, as far as it can be believed
	User   string
	APIKey string // in clear; the service hashes it before it goes anywhere
	Tier   string
	Method string
	Host   string
	Path   string // escaped, as it was sent; a query behind it is cut off

	// Headers, Cookies and Query are those that rules look at; Attributes are the
	// application's own words, such as action: post.
	Headers, Cookies, Query, Attributes map[string]string

	Cost int64 // 0 leaves it to each rule
}

// message is the request as it goes over the wire. The maps are not copied.
func (r *Request) message() *pb.CheckRequest {
	m := &pb.CheckRequest{
		User: r.User, ApiKey: r.APIKey, Tier: r.Tier, Method: r.Method, Host: r.Host, Path: r.Path, Cost: r.Cost,
		Headers: r.Headers, Cookies: r.Cookies, Query: r.Query, Attributes: r.Attributes,
	}
	if r.IP.IsValid() {
		m.Ip = r.IP.String()
	}
	return m
}
