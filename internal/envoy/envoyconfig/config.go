// Package envoyconfig reads the configuration of Envoy's rate limit service, the one that
// people know from envoyproxy/ratelimit, and finds what it says of a request.
//
// A file is one domain: a tree of descriptors, some of which have limits. A request
// brings lists of entries, and each list leads from the root of its domain to a node,
// or to none. [Read] makes a [Config] of files, [Open] of a directory that may change;
// [Domain.Find] finds the node, and [Domain.AppendKey] names the counter.
//
// The files are taken as they are. What they may say besides, such as another algorithm
// than the fixed window, is in docs/reference/envoy-service.md.
//
// The package decides nothing, and speaks no protocol.
package envoyconfig

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/rule"
)

// Bounds on a configuration, besides those of one document.
const (
	MaxFiles       = 1000
	MaxDescriptors = 100_000
	MaxRateLimits  = 16 // of one descriptor; each is one more thing to charge
)

// maxPath is the longest name of a node, in bytes: each has that of all nodes above it.
const maxPath = 1000

// Config is what all files say together. It never changes.
type Config struct {
	domains map[string]*Domain
	count   int             // of descriptors
	secrets map[string]bool // of the keys that are in the files: whether they sound secret

	own      []string       // fields that only weir knows and that are in the files
	calendar *time.Location // of limits that requests bring; nil if none
}

// Domain returns a domain, or nil if there is none of this name.
func (c *Config) Domain(name string) *Domain { return c.domains[name] }

// Domains returns the names of all domains, in order.
func (c *Config) Domains() []string { return slices.Sorted(maps.Keys(c.domains)) }

// Descriptors is how many descriptors all domains have together.
func (c *Config) Descriptors() int { return c.count }

// Own returns the fields in the files that envoyproxy/ratelimit does not know, in order.
func (c *Config) Own() []string { return slices.Sorted(slices.Values(c.own)) }

func (c *Config) noteOwn(field string) {
	if slices.Contains(ownFields, field) && !slices.Contains(c.own, field) {
		c.own = append(c.own, field)
	}
}

// Nodes visits all nodes, by domain and in the order of the files; the last of a domain
// stands for all limits that requests bring.
func (c *Config) Nodes() iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		for _, name := range c.Domains() {
			d := c.domains[name]
			if !d.root.visit(yield) || !yield(&d.brought) {
				return
			}
		}
	}
}

func (l *level) visit(yield func(*Node) bool) bool {
	for _, b := range l.all {
		if b.node != nil && !yield(b.node) || !b.below.visit(yield) {
			return false
		}
	}
	return true
}

// Domain is one tree of descriptors.
type Domain struct {
	Name string

	config  *Config
	root    level
	failure OnFailure
	brought Node     // what all limits have in common that requests bring
	beside  []string // keys of entries that belong to no descriptor, because they are about holds

	mu        sync.RWMutex
	overrides map[override]*Node
}

// level is what may come next in a list of entries.
type level struct {
	exact map[string]*branch // by composite key
	wild  []*branch          // in the order of the files
	all   []*branch          // likewise
}

// branch is a descriptor.
type branch struct {
	composite  string // "key" or "key_value"
	key, value string
	parts      []string // of a composite with stars, between them
	shared     bool     // all values that a pattern matches are one
	node       *Node    // nil if it has no limit of its own
	below      level
}

// Node is a descriptor that has something to say of a request.
type Node struct {
	// Path says where it stands, for people: "edge.path_/login.remote_address".
	Path string

	// Unlimited is a node that only says that there is no limit.
	Unlimited bool

	// Shadow limits are counted and reported, and never deny.
	Shadow bool

	// Quota limits deny only if those of all other descriptors of the request
	// that are in this mode do, too.
	Quota bool

	// Always charges hits in full even if they do not fit, because they tell what is done
	// already.
	Always bool

	// Hold says how calls begin and end a hold. Nil if each is charged.
	Hold *Hold

	// Replaces are the names of limits that do not apply where this one does.
	Replaces []string

	// Limits are those that have to be kept, all of them. There is one, or several as
	// an extension; none if it is Unlimited.
	Limits []Limit

	// Failure is what happens while the store cannot be asked.
	Failure OnFailure

	// Metadata is what the file says of the descriptor for others; nil if nothing.
	Metadata map[string]any

	denies bool        // one of the limits is 0
	terms  [2][2]Terms // by whether denied requests count, and whether it only watches
}

// Limit is a number of requests in a period.
type Limit struct {
	Name       string
	N          uint32 // 0 denies everything
	Unit       Unit
	Multiplier uint32 // of the unit, if a request brought one; otherwise 0
	Period     time.Duration
	Algorithm  weir.Algorithm
	Burst      int64

	// Zone is where the periods follow the calendar, and Starts when they begin there. Nil and "" if they
	// have a constant length.
	Zone   *time.Location
	Starts string

	named  bool           // the unit was given by its name
	bounds *weir.Compiled // tells where the periods of a calendar begin; nil for others
}

// EndOf returns when the window ends that contains an instant.
func (l *Limit) EndOf(at weir.Micros) weir.Micros {
	if l.bounds != nil {
		bounds, _ := l.bounds.Periods(at)
		return bounds[2]
	}
	period := weir.Micros(l.Period.Microseconds())
	return at - max(0, at)%period + period
}

// Terms are how to charge a node.
type Terms struct {
	Rule   *rule.Entry
	Limits []*weir.Compiled // as many as the node's, unless it Denies
}

// Terms are how to charge the node. With countDenied, its windows count requests that
// are denied, too, but what is denied a hold is charged when it ends. With watch it has no say, as if it were a shadow.
func (n *Node) Terms(countDenied, watch bool) *Terms {
	return &n.terms[index(countDenied && n.Hold == nil)][index(watch || n.Shadow || n.Quota)]
}

// Denies is whether a limit of the node is 0, so that there is nothing to be counted.
func (n *Node) Denies() bool { return n.denies }

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

// IsReplaced is whether another node of the request stands in for this one.
func (n *Node) IsReplaced(names []string) bool {
	for i := range n.Limits {
		if name := n.Limits[i].Name; name != "" && slices.Contains(names, name) {
			return true
		}
	}
	return false
}

// OnFailure is what happens to a request while the store cannot be asked. A local fallback ends after For, if that is not
// 0, and then something else happens.
type OnFailure struct {
	Failure
	For  time.Duration
	Then Failure
}

// String returns it as it is written in a file.
func (f OnFailure) String() string {
	if f.For == 0 {
		return f.Failure.String()
	}
	return fmt.Sprintf("{local: %s, then: %s}", notation.FormatDuration(f.For), f.Then)
}

// IsError is whether a call fails that is denied because the store cannot be asked.
func (f OnFailure) IsError() bool { return f.Failure == FailError || f.For > 0 && f.Then == FailError }

// fallback is how a local fallback ends, for the engine.
func (f OnFailure) fallback() rule.Fallback {
	return rule.Fallback{For: f.For, Then: f.Then.Policy()}
}

// Failure is one of the words for what happens.
type Failure uint8

const (
	FailOpen   Failure = iota // it passes
	FailClosed                // it is over the limit
	FailLocal                 // this instance goes on by itself, with its share of the limit
	FailError                 // the call fails, so that Envoy's failure_mode_deny decides
)

var (
	failureNames = []string{FailOpen: "open", FailClosed: "closed", FailLocal: "local", FailError: "error"}
	thenNames    = []string{"open", "closed", "error"}
)

// String returns the word as it is written in a file.
func (f Failure) String() string { return failureNames[f] }

// Policy is what the engine has to do. To it, an error is a denial.
func (f Failure) Policy() rule.Failure {
	switch f {
	case FailClosed, FailError:
		return rule.Closed
	case FailLocal:
		return rule.Local
	}
	return rule.Open
}

// Dump writes every limit in a line, by domain and in the order of the files, as
// envoyproxy/ratelimit does at /rlconfig:
//
//	edge.path_/login.remote_address: unit=MINUTE requests_per_unit=5, shadow_mode: false, quota_mode: false
//
// What weir adds to a limit follows in the same line.
func (c *Config) Dump(w io.Writer) error {
	b := bufio.NewWriter(w)
	for n := range c.Nodes() {
		n.dump(b)
	}
	return b.Flush()
}

func (n *Node) dump(b *bufio.Writer) {
	if n.Unlimited {
		fmt.Fprintf(b, "%s: unlimited: true\n", n.Path)
	}
	for i := range n.Limits {
		l := &n.Limits[i]
		unit := strings.ToUpper(l.Unit.String())
		if l.Unit == Unknown {
			unit = notation.FormatDuration(l.Period)
		}
		fmt.Fprintf(b, "%s: unit=%s requests_per_unit=%d, shadow_mode: %t, quota_mode: %t", n.Path, unit, l.N, n.Shadow, n.Quota)
		if l.Name != "" {
			fmt.Fprintf(b, ", name: %s", l.Name)
		}
		if l.Algorithm != weir.FixedWindow {
			fmt.Fprintf(b, ", algorithm: %s", l.Algorithm)
		}
		if l.Burst > 0 {
			fmt.Fprintf(b, ", burst: %d", l.Burst)
		}
		if l.Zone != nil {
			fmt.Fprintf(b, ", zone: %s", l.Zone)
		}
		if l.Starts != "" {
			fmt.Fprintf(b, ", starts: %s", l.Starts)
		}
		if n.Failure.Failure != FailOpen {
			fmt.Fprintf(b, ", on_failure: %s", n.Failure)
		}
		if n.Always {
			b.WriteString(", charge: always")
		}
		if n.Hold != nil {
			b.WriteString(", " + n.Hold.String())
		}
		b.WriteByte('\n')
	}
}

// counterName keeps the counters apart from those of rules: no id of a rule has an @.
// It is the same for all nodes, so that a limit that a request brings goes on with the
// counter of the one in the file, if the unit is the same.
const counterName = "@envoy"

// maxID is the longest id under which a node is reported, in bytes. The tag of a hold has it, too.
const maxID = weir.MaxTagLen - 8

// compileRules makes ready under which name a node is reported, and how it is treated.
func (n *Node) compileRules() {
	id := document.Clip("envoy:"+n.Path, maxID)
	for _, counting := range []bool{false, true} {
		for _, mode := range []rule.Mode{rule.Enforce, rule.Shadow} {
			n.terms[index(counting)][index(mode == rule.Shadow)].Rule = &rule.Entry{
				Rule: &rule.Rule{ID: id, Mode: mode, OnFailure: n.Failure.Policy(), Fallback: n.Failure.fallback(), CountDenied: counting},
			}
		}
	}
}

// compileLimits makes ready what a node charges.
func (n *Node) compileLimits() error {
	n.denies = slices.ContainsFunc(n.Limits, func(l Limit) bool { return l.N == 0 })
	if n.Unlimited || n.denies {
		return nil
	}
	for _, counting := range []bool{false, true} {
		limits := make([]*weir.Compiled, len(n.Limits))
		for i := range n.Limits {
			c, err := n.Limits[i].compile(counting, n.Hold != nil && n.Hold.OnExpiry == rule.Release)
			if err != nil {
				return err
			}
			limits[i] = c
		}
		for watch := range 2 {
			n.terms[index(counting)][watch].Limits = limits
		}
	}
	return nil
}

// compile makes a limit ready. Buckets cannot count what they deny.
func (l *Limit) compile(counting, release bool) (*weir.Compiled, error) {
	bucket := l.Algorithm == weir.TokenBucket || l.Algorithm == weir.LeakyBucket
	return weir.Limit{
		Name: counterName, Algorithm: l.Algorithm, N: int64(l.N), Burst: l.Burst, Period: l.Period, CountDenied: counting && !bucket,
		Zone: l.Zone, Starts: l.Starts, Release: release,
	}.Compile()
}
