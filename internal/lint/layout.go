package lint

// line is one floor of the house. Its packages may import those of lower lines,
// never one another, and never anything above.
type line struct {
	packages []string // directories; with /... for all below
	why      string
}

// layout is the house from top to bottom. A new package needs a place here.
var layout = []line{
	{[]string{"test/e2e"}, "tests of the built binary, which see it as a user does, and every command that the docs quote"},
	{[]string{"test/chaos/..."}, "the built binary under random faults, and a checker that judges from its answers alone"},
	{[]string{"test/bench/..."}, "weir beside its peers, and how wrong estimates are; a module of its own, so that users do not download the peers"},
	{[]string{"test/conformance/..."}, "weir beside the services that it can replace, such as Envoy's ratelimit; modules of their own, so that users do not download them"},
	{[]string{"examples/middleware/..."}, "programs to copy from; each a module of its own, so that users do not download frameworks"},
	{[]string{"examples/library"}, "the usual jobs of the library in as few lines as they take; README quotes them"},
	{[]string{"cmd/weir"}, "the command: one file per subcommand; it maps flags to the packages below and holds no logic that another program would want"},
	{[]string{"internal/app"}, "the process: what it consists of is opened in order and undone in reverse; the only one that knows all the others"},
	{[]string{"web"}, "the dashboard, embedded; it reads the HTTP API and owns nothing"},
	{[]string{"deploy"}, "files for operators, and the tests that hold them against what weir exposes"},
	{[]string{"internal/gateway"}, "weir's own reverse proxy, behind the limiter; it judges nothing"},
	{[]string{"internal/server/httpapi", "internal/server/envoyrls", "internal/server/grpcapi"}, "the HTTP API, Envoy's rate limit service and the gRPC API: protocol to engine and back, nothing else; one protocol knows nothing of another"},
	{[]string{"internal/manage"}, "changing rules, and looking up, resetting and blocking clients, whatever the protocol"},
	{[]string{"internal/envoyconfig"}, "Envoy's configuration of limits, read and looked up; no protocol"},
	{[]string{"internal/replay"}, "plays a log against rules, and says what would have happened"},
	{[]string{"stats/..."}, "what happened: series, rankings, alerts; it fits the engine's observer and speaks no protocol"},
	{[]string{"counter/memory", "counter/redis", "counter/countertest", "queue/memory", "queue/redis", "queue/queuetest"}, "where counts and work are kept, and what any such place must pass"},
	{[]string{"counter", "queue"}, "what applications count, and jobs that they delay; neither limits anybody"},
	{[]string{"internal/replay/accesslog"}, "reads the lines of access logs; it knows no rules"},
	{[]string{"internal/simulate"}, "plays traffic against the algorithms; pure, so that it can be shown anywhere"},
	{[]string{"internal/simulate/chart"}, "pictures of figures over time, as SVG and HTML; it knows nothing of limits"},
	{[]string{"middleware/httplimit", "middleware/grpclimit"}, "the engine in front of a handler; httplimit wraps no ResponseWriter and needs no library but the standard one"},
	{[]string{"client"}, "asks a weir elsewhere, and answers by itself while that is unavailable"},
	{[]string{"internal/headerfield"}, "what a verdict says in header fields, for every protocol that has them"},
	{[]string{"metrics"}, "what the engine decides, counted for Prometheus; no other package imports that library"},
	{[]string{"engine"}, "rules and a store in, a verdict out; it speaks no protocol, so that every protocol can use it"},
	{[]string{"internal/repo/file", "internal/repo/redis", "internal/repo/repotest"}, "where the document of rules is kept; a place knows nothing of what the rules do, nor of another place"},
	{[]string{"internal/repo"}, "what keeping the document of rules and its history means, wherever it is"},
	{[]string{"internal/ruleedit"}, "changes of a document of rules that keep what people wrote"},
	{[]string{"rule"}, "who is limited, by what; it knows no store, so that rules can be read and tried without one"},
	{[]string{"internal/match"}, "which rules a request meets, by number: hosts, paths, attributes; it does not know what a rule limits"},
	{[]string{"store/redis/goredis"}, "a client of go-redis for the Redis store; a module of its own, so that only its users download go-redis"},
	{[]string{"store/memory", "store/redis", "store/storetest"}, "where the state of keys is kept; stores do no arithmetic, except the scripts for Redis, which are the same arithmetic in Lua, and one must not lean on another"},
	{[]string{"store/redis/script"}, "writes the scripts that Redis runs, from their parts; it is run by make generate, and no package imports it"},
	{[]string{"internal/scenario"}, "the language of test cases, which weir simulate runs too; it needs the vocabulary only"},
	{[]string{"."}, "the vocabulary and the arithmetic; it depends on the standard library, so that everything can depend on it"},
	{[]string{"proto/..."}, "the wire formats of gRPC, and the code that is generated from them"},
	{[]string{"internal/document"}, "YAML and JSON with their places; the only one to know a YAML library, so that it can be replaced"},
	{[]string{"internal/datadir"}, "the directory of what survives a restart: one owner, whole files"},
	{[]string{"internal/inbound", "internal/httpbody"}, "what servers read of a call, in a memory that all calls share"},
	{[]string{"internal/redislink"}, "a connection to Redis that need not be there yet"},
	{[]string{"internal/certs", "internal/bearer"}, "certificates and tokens in files, read again when they change"},
	{[]string{"internal/disk"}, "what a file needs to survive a crash, and two processes at once"},
	{[]string{"internal/watch"}, "files and directories that change; the only one to know a library for that"},
	{[]string{"internal/testredis"}, "Redis servers for tests, and what they leave behind"},
	{[]string{"internal/..."}, "small tools that know nothing of rate limits"},
}

// maxRootFolders is how many folders a stranger takes in at a glance.
const maxRootFolders = 18

// bannedNames are package names that say nothing about what is inside.
var bannedNames = map[string]bool{
	"util": true, "utils": true, "common": true, "helper": true, "helpers": true,
	"types": true, "misc": true, "base": true, "shared": true, "manager": true, "impl": true,
}

// thirdParty is what may be imported from elsewhere, and by whom. Tests are free.
var thirdParty = map[string][]string{
	"cmd/weir":         {"github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/sys"},
	"internal/app":     {"github.com/redis/rueidis", "google.golang.org/grpc", "github.com/envoyproxy/go-control-plane/envoy", "go.opentelemetry.io/otel", "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"},
	"examples/library": {"google.golang.org/grpc"},
	"metrics":          {"github.com/prometheus/client_golang"},

	"middleware/grpclimit":     {"google.golang.org/grpc", "google.golang.org/genproto/googleapis/rpc", "google.golang.org/protobuf"},
	"internal/server/grpcapi":  {"google.golang.org/grpc", "google.golang.org/genproto/googleapis/rpc", "google.golang.org/protobuf"},
	"client":                   {"google.golang.org/grpc", "google.golang.org/protobuf"},
	"proto/...":                {"google.golang.org/grpc", "google.golang.org/protobuf"},
	"internal/server/envoyrls": {"google.golang.org/grpc", "google.golang.org/protobuf", "github.com/envoyproxy/go-control-plane/envoy"},
	"counter/redis":            {"github.com/redis/rueidis"},
	"queue/redis":              {"github.com/redis/rueidis"},
	"stats/...":                {"github.com/redis/rueidis"},

	"store/redis":          {"github.com/redis/rueidis"},
	"internal/watch":       {"github.com/fsnotify/fsnotify"},
	"store/redis/goredis":  {"github.com/redis/go-redis/v9"},
	"internal/repo/redis":  {"github.com/redis/rueidis"},
	"internal/document":    {"go.yaml.in/yaml/v4"},
	"internal/inbound":     {"google.golang.org/grpc", "google.golang.org/protobuf"},
	"internal/redislink":   {"github.com/redis/rueidis"},
	"internal/testredis":   {"go.uber.org/goleak"},
	"test/bench/...":       {"*"},
	"test/conformance/...": {"*"},

	"examples/middleware/...": {"*"},
}

// untouchable is what the arithmetic must not use: whoever reads a clock or
// takes a lock in there makes answers that cannot be computed twice.
var untouchable = map[string]string{
	"time.Now": "reads a clock", "time.Since": "reads a clock", "time.Until": "reads a clock",
	"time.Sleep": "waits", "time.After": "waits", "time.Tick": "waits",
	"sync.Mutex": "is a lock", "sync.RWMutex": "is a lock", "sync.Cond": "is a lock",
	"rand.Int": "is chance", "rand.Int64": "is chance", "rand.Uint64": "is chance", "rand.Float64": "is chance",
}

// maxLines is where a file needs a table of contents, and so is two files.
const maxLines = 400
