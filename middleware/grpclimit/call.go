package grpclimit

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"google.golang.org/grpc/metadata"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/clientip"
	"github.com/weirhq/weir/internal/front"
	"github.com/weirhq/weir/internal/inbound"
	"github.com/weirhq/weir/rule"
)

// call is what one call needs on its way.
type call struct {
	method  string
	request rule.Request
	wrong   error // why it cannot be decided; nil if it can
	verdict engine.Verdict
	values  values
}

// calls are used again for unary calls. Those of streams are not: a handler may leave
// a goroutine behind that still reads.
var calls = sync.Pool{New: func() any { return new(call) }}

// release keeps nothing of the call but the memory of the verdict, which clears itself.
func (c *call) release() {
	c.method, c.request, c.wrong, c.values = "", rule.Request{}, nil, values{}
	calls.Put(c)
}

// readCall puts into the call what is known of it.
func (l *Limiter) readCall(ctx context.Context, c *call, method string) {
	md, _ := metadata.FromIncomingContext(ctx) // as the client sent them
	c.method, c.values.md = method, md
	q, o := &c.request, &l.options
	q.Values = &c.values
	q.Method, q.Path = http.MethodPost, method // every call is a POST
	if hosts := md[":authority"]; len(hosts) > 0 {
		q.Host = hosts[0]
	}
	if o.APIKey != nil {
		q.APIKey = o.APIKey(ctx, method)
	} else if keys := md["x-api-key"]; len(keys) > 0 {
		q.APIKey, q.OtherAPIKeys = keys[0], keys[1:]
	}
	if o.User != nil {
		q.User = o.User(ctx, method)
	}
	if o.Tier != nil {
		q.Tier = o.Tier(ctx, method)
	}
	if o.Priority != nil {
		q.Priority = o.Priority(ctx, method)
	}
	if o.Attributes != nil {
		q.Attributes = o.Attributes(ctx, method)
	}
	if o.Cost != nil {
		q.Cost = max(0, o.Cost(ctx, method))
	}
	if o.Costs != nil {
		q.Costs = o.Costs(ctx, method)
	}
	if o.Token != nil {
		var claims *rule.Claims
		claims, c.wrong = o.Token(md["authorization"])
		front.Identify(q, claims)
	}
	remote := inbound.RemoteOf(ctx)
	var doubt clientip.Doubt
	if q.IP, doubt = l.front.Clients.Client(remote, inbound.Proxied(md)); doubt != clientip.Clear {
		l.front.Doubt(doubt, remote)
	}
}

// values finds metadata by the names of headers. There are neither cookies nor queries.
type values struct{ md metadata.MD }

func (*values) Cookie(string, int) (string, int) { return "", 0 }
func (*values) Query(string, int) (string, int)  { return "", 0 }

// Header finds the values of a key. Keys are in small letters; a name is not, and making
// it so must not cost memory.
func (v *values) Header(name string, from int) (string, int) {
	var buf [64]byte
	if len(name) > len(buf) {
		return rule.NextValue(v.md[strings.ToLower(name)], from)
	}
	key := buf[:len(name)]
	for i := range key {
		b := name[i]
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		key[i] = b
	}
	return rule.NextValue(v.md[string(key)], from)
}
