package engine_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/store/redis"
)

// headers are what a request of these tests carries.
type headers map[string]string

func (h headers) Header(name string, from int) (string, int) { return rule.OneValue(h[name], from) }
func (h headers) Cookie(string, int) (string, int)           { return "", 0 }
func (h headers) Query(string, int) (string, int)            { return "", 0 }

// ask is one line of a conversation with the rules of an example: so many requests
// after so long, of which so many are allowed, and who denies the last one.
type ask struct {
	after   time.Duration
	times   int
	req     rule.Request
	allowed int
	denies  string // the id of the rule that speaks for the last one, if it is denied
}

// on is a request to a path.
func on(method, path string, change func(*rule.Request)) rule.Request {
	r := rule.Request{Method: method, Path: path, User: "alice", IP: netip.MustParseAddr("198.51.100.7")}
	if change != nil {
		change(&r)
	}
	return r
}

func login(ip, account string) rule.Request {
	return on("POST", "/api/login", func(r *rule.Request) {
		r.IP, r.Attributes = netip.MustParseAddr(ip), map[string]string{"account": account}
	})
}

// from gives a request the address of its client.
func from(ip string) func(*rule.Request) {
	return func(r *rule.Request) { r.IP = netip.MustParseAddr(ip) }
}

// phone gives a request the number that its code goes to.
func phone(number string) func(*rule.Request) {
	return func(r *rule.Request) { r.Attributes = map[string]string{"phone": number} }
}

func code(ip, number string) rule.Request {
	return on("POST", "/api/sms-code", func(r *rule.Request) {
		from(ip)(r)
		phone(number)(r)
	})
}

// tool is a call of a tool by MCP.
func tool(name string) rule.Request {
	return on("POST", "/mcp", func(r *rule.Request) {
		r.Attributes = map[string]string{"mcp.method": "tools/call", "mcp.tool": name}
	})
}

func attributes(pairs ...string) rule.Request {
	r := rule.Request{User: "bob", Attributes: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		r.Attributes[pairs[i]] = pairs[i+1]
	}
	return r
}

var examples = map[string][]ask{
	"endpoints.yaml": {
		{0, 8, on("POST", "/api/login", nil), 5, "login"},
		{time.Minute, 8, on("POST", "/api/login", nil), 5, "login"},
		{0, 250, on("GET", "/api/users", nil), 200, "query"},
		{time.Second, 250, on("GET", "/api/users", nil), 100, "query"},
		{0, 15, on("PUT", "/api/users/17", nil), 10, "write"},
		{0, 60, on("POST", "/api/upload", nil), 50, "upload"},
		{72 * time.Second, 2, on("POST", "/api/upload", nil), 1, "upload"},
		{0, 5, on("POST", "/elsewhere", nil), 5, ""},
	},
	"mcp.yaml": {
		{0, 35, tool("search"), 30, "tools"},
		{0, 20, tool("invented"), 20, ""},
		{0, 20, tool("another"), 10, "tools"},
		{0, 7, tool("export"), 5, "exports"},
		{time.Minute, 30, tool("search"), 30, ""},
		{0, 20, on("POST", "/mcp", nil), 20, ""},
	},
	"posting.yaml": {
		{0, 5, attributes("action", "post"), 3, "post"},
		{time.Minute, 5, attributes("action", "post"), 3, "post"},
		{0, 5, attributes("action", "like"), 5, ""},
		{time.Minute, 5, attributes("action", "post"), 3, "post"}, // 9
		{time.Minute, 5, attributes("action", "post"), 3, "post"},
		{time.Minute, 5, attributes("action", "post"), 3, "post"},
		{time.Minute, 5, attributes("action", "post"), 3, "post"}, // 18
		{time.Minute, 5, attributes("action", "post"), 2, "post"}, // 20 an hour
		{time.Minute, 5, attributes("action", "post"), 0, "post"},
	},
	"community.yaml": {
		{0, 8, attributes("action", "comment"), 5, "comment"},
		{time.Minute, 8, attributes("action", "comment"), 5, "comment"},
		{0, 30, attributes("action", "like"), 20, "like"},
		{time.Second, 2, attributes("action", "share"), 1, "like"}, // one a second from here on
		{0, 40, attributes("action", "search"), 30, "search"},
		{0, 60, attributes("action", "mail"), 50, "mail"},
		{24 * time.Hour, 60, attributes("action", "mail"), 50, "mail"},
	},
	"protection.yaml": {
		{0, 120, attributes("resource", "database"), 100, "database"},
		{0, 60, attributes("resource", "download"), 50, "download"},
		{0, 900, attributes(), 850, "everything"},
		{time.Second, 60, attributes("resource", "download"), 50, "download"},
	},
	"ip-before-user.yaml": {
		{0, 5, on("GET", "/api/seckill", nil), 3, "by-ip"},
		{5 * time.Second, 5, on("GET", "/api/seckill", nil), 2, "by-user"}, // 5 in a minute
		{0, 3, on("GET", "/api/seckill", func(r *rule.Request) { r.User = "bob" }), 1, "by-ip"},
		{0, 1, on("GET", "/api/seckill", nil), 0, "by-ip"}, // both deny
		{55 * time.Second, 3, on("GET", "/api/seckill", nil), 3, ""},
	},
	"attempts.yaml": {
		{0, 10, on("GET", "/api/seckill", from("198.51.100.1")), 3, "by-ip"},                      // 7 leave alice untouched
		{0, 3, on("GET", "/api/seckill", from("198.51.100.2")), 2, "by-user"},                     // her 6th
		{4999 * time.Millisecond, 1, on("GET", "/api/seckill", from("198.51.100.1")), 0, "by-ip"}, // the 11th of the address
		{54 * time.Second, 1, on("GET", "/api/seckill", from("198.51.100.3")), 0, "by-user"},
		{time.Millisecond * 1001, 3, on("GET", "/api/seckill", from("198.51.100.4")), 3, ""}, // one of the last minute was denied
		{0, 2, on("GET", "/api/seckill", from("198.51.100.5")), 1, "by-user"},
		{0, 1, on("GET", "/api/seckill", func(r *rule.Request) { from("198.51.100.5")(r); r.User = "bob" }), 1, ""},
		{0, 1, on("GET", "/api/seckill", func(r *rule.Request) { from("198.51.100.5")(r); r.User = "bob" }), 0, "by-ip"}, // those of alice count
	},
	"plans.yaml": {
		{0, 180, on("GET", "/v1/search", func(r *rule.Request) { r.User, r.Tier = "erin", "business" }), 150, "endpoints"},
		{0, 50, on("GET", "/v1/invented", func(r *rule.Request) { r.User, r.Tier = "erin", "business" }), 50, ""},
		{0, 5, on("GET", "/v1/x", func(r *rule.Request) { r.User = "bob" }), 2, "quota"},
		{0, 60, on("GET", "/v1/x", nil), 20, "quota"}, // alice has an override, with no burst
		{0, 60, on("GET", "/v1/x", func(r *rule.Request) { r.User, r.Tier = "carol", "pro" }), 50, "quota"},
		{0, 12, on("GET", "/v1/reports/q", func(r *rule.Request) { r.User, r.Tier = "dora", "business" }), 10, "reports"},
		{24 * time.Hour, 12, on("GET", "/v1/reports/q", func(r *rule.Request) { r.User, r.Tier = "dora", "business" }), 10, "reports"},
	},
	"budgets.yaml": { // with the clients, in TestBudgetsExample
		{0, 25, attributes("org", "acme"), 25, ""},
		{0, 20_100, on("GET", "/x", nil), 20_000, "tokens"},
	},
	"clients.yaml": { // with the clients, in TestClientsExample
		{0, 15, on("GET", "/v1/x", nil), 10, "api"},
		{0, 6, on("GET", "/v1/reports/q", func(r *rule.Request) { r.User, r.Tier = "bob", "pro" }), 5, "reports"},
	},
	"tiers.yaml": {
		{0, 30, on("GET", "/api/x", func(r *rule.Request) { r.User = "nobody" }), 20, "api"},
		{0, 120, on("GET", "/api/x", func(r *rule.Request) { r.User, r.Tier = "f", "free" }), 100, "api"},
		{0, 2100, on("GET", "/api/x", func(r *rule.Request) { r.User, r.Tier = "p", "paid" }), 2000, "api"},
		{0, 3000, on("GET", "/api/x", func(r *rule.Request) { r.User, r.Tier = "e", "enterprise" }), 3000, ""},
		{0, 4000, on("GET", "/api/x", func(r *rule.Request) { r.Tier = "free" }), 4000, ""}, // alice has an override
		{0, 30, on("GET", "/api/reports/q", func(r *rule.Request) { r.User, r.Tier = "e", "enterprise" }), 20, "reports"},
	},
	"services.yaml": {
		{0, 30, on("GET", "/", func(r *rule.Request) { r.Host = "search.example.com" }), 20, "search"},
		{0, 210, on("GET", "/", func(r *rule.Request) { r.Host, r.Values = "a.example.com", headers{"X-Tenant": "acme"} }), 200, "tenants"},
		{0, 5, on("GET", "/", func(r *rule.Request) { r.Host, r.Values = "a.example.com", headers{"X-Tenant": "other"} }), 5, ""},
		{0, 510, attributes("caller", "shop", "callee", "billing"), 500, "calls"},
		{0, 60, attributes("caller", "shop", "callee", "mail"), 50, "mail"},
		{0, 5, attributes("caller", "blog", "callee", "billing"), 5, ""},
	},
	"api-keys.yaml": {
		{0, 120, on("GET", "/v1/x", func(r *rule.Request) { r.APIKey = "secret-1" }), 100, "per-key"},
		{0, 250, on("GET", "/v1/x", func(r *rule.Request) { r.APIKey, r.Tier = "secret-2", "paid" }), 200, "per-address"},
		{0, 5, on("GET", "/v1/x", func(r *rule.Request) { r.IP = netip.MustParseAddr("203.0.113.9") }), 0, ""},
		{0, 400, on("GET", "/v1/x", func(r *rule.Request) { r.IP = netip.MustParseAddr("10.1.2.3") }), 400, ""},
	},
	"tokens.yaml": {
		{0, 4, on("POST", "/v1/chat", func(r *rule.Request) { r.Costs = map[string]int64{"tokens": 30_000} }), 3, "chat-tokens"},
		{0, 58, on("POST", "/v1/chat", nil), 57, "chat-requests"},
	},
	"login.yaml": {
		{0, 8, login("198.51.100.7", "alice"), 5, "login-account"},
		{0, 5, login("198.51.100.7", "bob"), 2, "login-address"}, // what was denied counts, too
		{0, 1, login("198.51.100.8", "alice"), 0, "login-account"},
		{time.Minute, 1, login("198.51.100.7", "bob"), 1, ""},
	},
	"sms-codes.yaml": {
		{0, 3, code("198.51.100.7", "+861380000001"), 1, "sms-phone"},
		{time.Minute, 2, code("198.51.100.8", "+861380000001"), 1, "sms-phone"}, // from all addresses together
		{0, 1, code("198.51.100.9", "+861380000002"), 1, ""},
		{0, 1, code("198.51.100.9", "+861380000003"), 1, ""},
		{0, 3, code("198.51.100.9", "+861380000004"), 1, "sms-phone"},
		{0, 1, code("198.51.100.9", "+861380000005"), 0, "sms-address"}, // what was denied counts, too
		{0, 8, on("POST", "/api/sms-code/verify", phone("+861380000001")), 5, "sms-guesses"},
	},
	"crawlers.yaml": {
		{0, 70, on("GET", "/items/1", nil), 60, "pages"},
		{30 * time.Second, 1, on("GET", "/items/2", nil), 0, "pages"},
		{2 * time.Minute, 1, on("GET", "/items/3", nil), 1, ""},
		{0, 60, on("GET", "/items/1", from("198.51.101.1")), 60, ""},
		{0, 60, on("GET", "/items/1", from("198.51.101.2")), 60, ""},
		{0, 60, on("GET", "/items/1", from("198.51.101.3")), 30, "network"},
		{0, 900, on("GET", "/items/1", from("192.0.2.1")), 900, ""},
		{0, 1, on("GET", "/", from("203.0.113.9")), 0, ""},
	},
	"public-api.yaml": {
		{0, 70, on("GET", "/v1/x", func(r *rule.Request) { r.APIKey, r.Tier = "key-1", "free" }), 60, "plan"},
		{0, 1300, on("GET", "/v1/x", func(r *rule.Request) { r.APIKey, r.Tier = "key-2", "pro" }), 1200, "plan"},
		{0, 1900, on("GET", "/v1/x", func(r *rule.Request) { r.APIKey, r.Tier = "demo-key", "free" }), 1740, "address"},
		{0, 300, on("GET", "/v1/x", func(r *rule.Request) {
			r.APIKey, r.IP = "demo-key", netip.MustParseAddr("198.51.100.8")
		}), 260, "plan"},
		{0, 15, on("GET", "/v1/export/all", func(r *rule.Request) {
			r.APIKey, r.IP = "key-3", netip.MustParseAddr("198.51.100.8")
		}), 15, ""},
		{0, 1, on("GET", "/v1/x", func(r *rule.Request) { r.APIKey, r.IP = "leaked-key", netip.MustParseAddr("198.51.100.8") }), 0, ""},
	},
	"redis-recipes.yaml": {
		{0, 110, on("GET", "/recipes/incr-expire", nil), 100, "incr-expire"},
		{0, 110, on("GET", "/recipes/sorted-set", nil), 100, "sorted-set"},
		{0, 110, on("GET", "/recipes/two-counters", nil), 100, "two-counters"},
		{0, 110, on("GET", "/recipes/sub-counters", nil), 100, "sub-counters"},
		{0, 30, on("GET", "/recipes/bucket-hash", nil), 20, "bucket-hash"},
		{0, 30, on("GET", "/recipes/list", nil), 20, "list"},
		{0, 30, on("GET", "/recipes/cell", nil), 16, "cell"},
		{2 * time.Second, 2, on("GET", "/recipes/cell", nil), 1, "cell"},
	},
	"by-endpoint.yaml": {
		{0, 70, on("GET", "/api/orders/17", nil), 60, "endpoints"},
		{0, 1, on("GET", "/api/orders/18", nil), 0, "endpoints"},
		{0, 1, on("GET", "/api/orders", nil), 1, ""},
		{0, 39, on("GET", "/api/invented", nil), 39, ""},
		{0, 1, on("INVENTED", "/api/search", nil), 0, "writes"},
		{0, 110, on("DELETE", "/api/orders", nil), 59, "endpoints"},
		{0, 1, on("DELETE", "/api/search", func(r *rule.Request) { r.IP = netip.MustParseAddr("198.51.100.200") }), 1, ""},
		{0, 700, on("POST", "/api/search", func(r *rule.Request) { r.User = "batch" }), 100, "writes"},
		{time.Second, 1001, on("GET", "/", nil), 1000, "tiers"},
		{0, 1100, on("GET", "/", func(r *rule.Request) { r.Tier = "pro" }), 1100, ""},
		{0, 300, on("GET", "/api/x", func(r *rule.Request) { r.User, r.Tier, r.IP = "", "pro", netip.MustParseAddr("198.51.100.9") }), 248, "networks"},
	},
	"dollars.yaml": { // rule has the prices; a request without cost is a millionth of a dollar
		{0, 20, on("POST", "/v1/chat/completions", nil), 20, ""},
	},
	"llm.yaml": { // test/llm has the tokens
		{0, 700, on("POST", "/v1/chat/completions", nil), 600, "requests"},
	},
	"dangers.yaml": {
		{0, 30, on("GET", "/", nil), 20, "client-in-flight"},
		{2 * time.Minute, 15, on("GET", "/search", nil), 10, "search"},
		{4 * time.Minute, 15, on("POST", "/login", nil), 10, "failed-logins"},
	},
	"quickstart.yaml": {
		{0, 8, on("POST", "/api/login", nil), 5, "login"},
		{0, 250, on("GET", "/api/x", nil), 195, "api"},
		{time.Second, 1100, on("GET", "/", nil), 1000, "everything"},
	},
}

// Every example does what it says, in memory and in Redis.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../examples/rules/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no examples: %v", err)
	}
	server := testredis.Start(t)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr}, DisableCache: true, DisableRetry: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	for _, file := range files {
		name := filepath.Base(file)
		if examples[name] == nil {
			t.Errorf("%s is not tried here", name)
		}
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run("memory/"+name, func(t *testing.T) {
			converse(t, string(src), examples[name], func(clock func() weir.Micros) weir.Store {
				return memory.New(memory.Options{Clock: clock})
			})
		})
		t.Run("redis/"+name, func(t *testing.T) {
			converse(t, string(src), examples[name], func(clock func() weir.Micros) weir.Store {
				s, err := redis.New(client, redis.Options{Clock: clock, Timeout: 10 * time.Second, Prefix: name})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(s.Close)
				return s
			})
		})
	}
}

// The example promises queries one by one, at a constant rate: of those that come at
// once, each is delayed 10 ms more than the one before.
func TestProtectionIsPaced(t *testing.T) {
	src, err := os.ReadFile("../examples/rules/protection.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, string(src), nil)
	for i := range 100 {
		v := b.check(t, attributes("resource", "database"))
		if want := time.Duration(i) * 10 * time.Millisecond; !v.Allowed || v.Delay != want {
			t.Fatalf("request %d: allowed %v, delayed %v, want %v", i, v.Allowed, v.Delay, want)
		}
	}
	if v := b.check(t, attributes("resource", "database")); v.Allowed || v.RetryAfter != 10*time.Millisecond {
		t.Errorf("the queue is full, but %+v", v)
	}
}

func converse(t *testing.T, rules string, asks []ask, open func(clock func() weir.Micros) weir.Store) {
	var now atomic.Int64
	now.Store(int64(start))
	clock := func() weir.Micros { return weir.Micros(now.Load()) }
	e, err := engine.New(engine.Options{Store: open(clock), Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	e.Install(table(t, rules), 1)
	var v engine.Verdict
	for i, a := range asks {
		now.Add(a.after.Microseconds())
		allowed := 0
		for range a.times {
			if err := e.Check(t.Context(), &a.req, &v); err != nil {
				t.Fatal(err)
			}
			if v.Allowed {
				allowed++
			}
		}
		if allowed != a.allowed {
			t.Errorf("line %d: %d of %d were allowed, want %d", i+1, allowed, a.times, a.allowed)
		}
		if v.Allowed != (a.allowed == a.times) {
			t.Errorf("line %d: the last one was %+v", i+1, v)
		}
		if s := v.Speaker(); !v.Allowed && a.denies != "" && (s == nil || s.Rule.ID != a.denies) {
			t.Errorf("line %d: %+v speaks, want %s", i+1, s, a.denies)
		}
		for _, r := range v.Results {
			if strings.Contains(r.Key, "secret") {
				t.Errorf("line %d: an API key is in the clear: %s", i+1, r.Key)
			}
		}
	}
}
