package lint

// line is one layer. Its packages may import packages of lower lines, but not each
// other, and none above.
type line struct {
	packages []string // directories; with /... for all below
	why      string
}

// layout lists the layers from top to bottom. Add every new package here.
var layout = []line{
	{[]string{"test/e2e"}, "end-to-end tests of the built binary, and of every command that the docs quote; a separate module, so that users do not see what drives browsers and scripts"},
	{[]string{"test/chaos/..."}, "the built binary under random faults, and a checker that sees only its answers"},
	{[]string{"test/sdk"}, "the clients for TypeScript and Python against the built binary, the table of cases that these and the Go client must pass, and the generator of their types"},
	{[]string{"test/bench/..."}, "benchmarks against other limiters, and the accuracy of the algorithms; a separate module, so that users do not download the other limiters"},
	{[]string{"test/conformance/..."}, "comparison with services that weir can replace, such as Envoy's ratelimit; separate modules, so that users do not download them"},
	{[]string{"test/llm"}, "the gateway with real clients of language models; a separate module, so that users do not download them"},
	{[]string{"test/resp"}, "the server for Redis clients with real ones; a separate module, so that users do not download them"},
	{[]string{"scripts/release"}, "builds the archives, checksums and SBOM of a release; its tests build one, and install weir as a user does"},
	{[]string{"examples/middleware/..."}, "example programs; each one is a separate module, so that users do not download frameworks"},
	{[]string{"examples/library"}, "common tasks with the library in as few lines as possible; README and docs quote some of them"},
	{[]string{"examples/overload"}, "a service in an overload, without a limiter and with weir, as a table and a picture; a simulation"},
	{[]string{"cmd/weir"}, "the command, one file per subcommand; it maps flags to the packages below and has no logic that another program could use"},
	{[]string{"internal/app"}, "the process: opens its parts in order and closes them in reverse; it knows every part of the service and the gateway"},
	{[]string{"web"}, "the embedded dashboard; it uses the HTTP API and stores nothing"},
	{[]string{"deploy/helm"}, "tests of the Helm chart; a separate module, so that users do not download Helm and Kubernetes"},
	{[]string{"deploy/package"}, "makes the Debian and RPM packages; a separate module, so that users do not download the library for that"},
	{[]string{"deploy"}, "files for operators, and tests that compare them with what weir exposes"},
	{[]string{"internal/gateway"}, "weir's reverse proxy, behind the limiter; it makes no decisions about limits"},
	{[]string{"internal/server/httpapi", "internal/server/envoyrls", "internal/server/grpcapi", "internal/server/respapi"}, "the HTTP API, Envoy's rate limit service, the gRPC API and commands for Redis clients; they only translate between protocol and engine, and do not know each other"},
	{[]string{"internal/fault"}, "the catalogue of what goes wrong with a call, with a column for each protocol"},
	{[]string{"internal/rules/manage"}, "changes of rules, temporary overrides, and lookup, reset and block of clients, for every protocol"},
	{[]string{"internal/envoy/envoyxds"}, "subscribes to Envoy's rate limit configuration at an xDS control plane"},
	{[]string{"internal/envoy/envoyconfig"}, "reads Envoy's rate limit configuration and finds the limits of a request; no protocol"},
	{[]string{"internal/traffic/replay"}, "reads an access log, runs it against rules and reports what would have happened"},
	{[]string{"internal/alert"}, "alerts on statistics, and who is notified of them"},
	{[]string{"internal/testkit/archivetest"}, "the test suite that every archive of statistics must pass"},
	{[]string{"internal/archiveredis"}, "the archive of statistics in Redis, which the instances of weir share"},
	{[]string{"stats/..."}, "statistics: series and rankings; an observer of the engine, without a protocol"},
	{[]string{"counter/memory", "counter/redis", "internal/testkit/countertest", "queue/memory", "queue/redis"}, "the stores of counters and queues, and the test suite that every store of counters must pass"},
	{[]string{"internal/traffic/simulate"}, "runs traffic against the algorithms, without side effects"},
	{[]string{"internal/traffic/chart"}, "charts as SVG and HTML; it does not know limits"},
	{[]string{"middleware/httplimit", "middleware/grpclimit"}, "the engine in front of a handler; httplimit wraps a ResponseWriter only where a rule settles by the response, and needs only the standard library"},
	{[]string{"internal/front"}, "what is the same in front of every handler, whatever its protocol: clients, the gate, the adaptive limit, warnings, header fields"},
	{[]string{"middleware/jwt"}, "verifies JSON Web Tokens, and tells who a client is by them; only programs that import it contain the libraries for that"},
	{[]string{"client"}, "a client for a remote weir; it fails open or closed while the service is unavailable"},
	{[]string{"counter", "queue"}, "counters and job queues for applications; they limit no client"},
	{[]string{"metrics"}, "Prometheus metrics of the engine's decisions; no other package imports the Prometheus library"},
	{[]string{"internal/tally"}, "what metrics and statistics count with: the counters of a rule, stripes, bounded names"},
	{[]string{"rule/rulefile"}, "YAML, and an engine that follows a file; the only package that imports a YAML library, so that the library can be replaced, and other programs do not contain it"},
	{[]string{"engine"}, "decides requests by rules and a store; it has no protocol, so that every protocol can use it"},
	{[]string{"internal/rules/repo/file", "internal/rules/repo/redis", "internal/rules/repo/repotest"}, "the stores of documents that several processes change: the rules with their history, and the temporary overrides; they do not know each other"},
	{[]string{"internal/rules/repo"}, "compare and swap of a document: the interface of a store for the rules and their history, and of one without history"},
	{[]string{"internal/clients"}, "the directory of clients as data that changes at run time, and its stores; it knows no protocol"},
	{[]string{"internal/rules/ruleedit"}, "reads a rules document, once, and edits it so that its comments and layout stay"},
	{[]string{"internal/gateway/llm"}, "reads what language models are asked and what they answer: how many tokens a request may use, and how many it did, for the APIs of OpenAI, Anthropic, Google (Gemini) and Amazon (Bedrock), and for the many that copy one of them"},
	{[]string{"rule/expression"}, "expressions of rules in CEL; only programs that import it contain the CEL library"},
	{[]string{"rule"}, "rules: which requests are limited, and how; it knows no store, so that you can load and try rules without one"},
	{[]string{"internal/match"}, "finds the rules that match a request: hosts, paths, attributes; it does not know what a rule limits"},
	{[]string{"store/redis/goredis"}, "go-redis as the client of the Redis store; a separate module, so that only its users download go-redis"},
	{[]string{"store/lease"}, "a store around another one: it decides in memory by units that it leases there"},
	{[]string{"store/memory", "store/redis", "store/storetest"}, "the stores of client state; they do no arithmetic, except the Redis scripts, which are the same arithmetic in Lua; a store must not depend on another"},
	{[]string{"internal/traffic/scenario"}, "the language of test cases, which weir simulate also runs; it needs only the root package"},
	{[]string{"."}, "the types and the arithmetic; it depends on nothing but the standard library and two small internal packages, so that every package can depend on it"},
	{[]string{"sdk/proto/..."}, "the protobuf files of the gRPC API, and the code generated from them"},
	{[]string{"internal/document"}, "JSON, and YAML in a program with rule/rulefile: documents as trees with line and column, and a scanner of JSON where encoding/json would take too much time or memory"},
	{[]string{"internal/inbound"}, "reads gRPC requests within a memory budget that all calls share"},
	{[]string{"internal/redislink"}, "a connection to Redis, which may be unavailable at the start"},
	{[]string{"internal/trust"}, "certificates and tokens in files, reloaded when they change"},
	{[]string{"internal/disk"}, "files that survive a crash and two concurrent processes, and snapshots that tell when they are damaged"},
	{[]string{"internal/watch"}, "watches files and directories for changes; the only package that imports a library for that"},
	{[]string{"internal/testkit/testredis"}, "starts Redis servers for tests, and removes what they leave behind"},
	{[]string{"internal/testkit/testissuer"}, "an OpenID provider for tests, which makes tokens"},
	{[]string{"internal/testkit"}, "what tests of several packages need; it knows nothing of rate limits"},
	{[]string{"internal/traffic/loadgen"}, "load: a closed loop of callers that is measured, and the traffic of weir demo"},
	{[]string{"internal/testkit/testoverload"}, "simulates a service in an overload, in virtual time"},
	{[]string{"internal/overload"}, "limits how many requests are in flight to a service of unknown capacity, and sheds requests by priority while a process uses too much CPU or memory"},
	{[]string{"internal/budget"}, "shares a limited amount of memory among concurrent callers, and reads bodies within it"},
	{[]string{"internal/..."}, "small tools that know nothing of rate limits"},
}

// bannedNames are package names that say nothing about what is inside.
var bannedNames = map[string]bool{
	"util": true, "utils": true, "common": true, "helper": true, "helpers": true,
	"types": true, "misc": true, "base": true, "shared": true, "manager": true, "impl": true,
}

// thirdParty is what may be imported from elsewhere, and by whom. Tests are free.
var thirdParty = map[string][]string{
	"deploy/helm":      {"*"},
	"deploy/package":   {"github.com/goreleaser/nfpm/v2"},
	"cmd/weir":         {"github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/crypto/x509roots", "golang.org/x/sys"},
	"internal/app":     {"github.com/redis/rueidis", "google.golang.org/grpc", "github.com/envoyproxy/go-control-plane/envoy", "go.opentelemetry.io/otel", "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"},
	"examples/library": {"google.golang.org/grpc"},
	"metrics":          {"github.com/prometheus/client_golang"},

	"middleware/grpclimit":     {"google.golang.org/grpc", "google.golang.org/genproto/googleapis/rpc", "google.golang.org/protobuf"},
	"middleware/jwt":           {"github.com/go-jose/go-jose/v4"},
	"internal/server/grpcapi":  {"google.golang.org/grpc", "google.golang.org/genproto/googleapis/rpc", "google.golang.org/protobuf"},
	"client":                   {"google.golang.org/grpc", "google.golang.org/protobuf"},
	"sdk/proto/...":            {"google.golang.org/grpc", "google.golang.org/protobuf"},
	"internal/envoy/envoyxds":  {"google.golang.org/grpc", "google.golang.org/genproto/googleapis/rpc", "google.golang.org/protobuf", "github.com/envoyproxy/go-control-plane"},
	"internal/server/envoyrls": {"google.golang.org/grpc", "google.golang.org/protobuf", "github.com/envoyproxy/go-control-plane/envoy"},
	"counter/redis":            {"github.com/redis/rueidis"},
	"queue/redis":              {"github.com/redis/rueidis"},
	"internal/archiveredis":    {"github.com/redis/rueidis"},

	"store/redis":               {"github.com/redis/rueidis"},
	"internal/watch":            {"github.com/fsnotify/fsnotify"},
	"store/redis/goredis":       {"github.com/redis/go-redis/v9"},
	"internal/rules/repo/redis": {"github.com/redis/rueidis"},
	"internal/clients":          {"github.com/redis/rueidis"},

	"rule/expression":             {"cel.dev/cel-go"},
	"rule/rulefile":               {"go.yaml.in/yaml/v4"},
	"internal/fault":              {"google.golang.org/grpc/codes"},
	"internal/inbound":            {"google.golang.org/grpc", "google.golang.org/protobuf"},
	"internal/redislink":          {"github.com/redis/rueidis"},
	"internal/testkit":            {"go.uber.org/goleak"},
	"internal/testkit/testissuer": {"github.com/go-jose/go-jose/v4"},
	"internal/testkit/testredis":  {"go.uber.org/goleak"},
	"test/bench/...":              {"*"},
	"test/conformance/...":        {"*"},
	"test/e2e":                    {"*"},
	"test/llm":                    {"*"},
	"test/resp":                   {"*"},

	"examples/middleware/...": {"*"},
}

// untouchable lists what the arithmetic must not use: with a clock or a lock, its
// answers could not be computed twice.
var untouchable = map[string]string{
	"time.Now": "reads a clock", "time.Since": "reads a clock", "time.Until": "reads a clock",
	"time.Sleep": "waits", "time.After": "waits", "time.Tick": "waits",
	"sync.Mutex": "is a lock", "sync.RWMutex": "is a lock", "sync.Cond": "is a lock",
	"rand.Int": "is chance", "rand.Int64": "is chance", "rand.Uint64": "is chance", "rand.Float64": "is chance",
}

// maxLines is where a file needs a table of contents, and so is two files.
const maxLines = 400
