package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/lease"
)

// Bytes of a call to Redis and its answer, for a key of about 30 bytes; TestBytesOfCalls.
const (
	bytesOfCheck   = 210
	bytesOfMessage = 380
)

// most are the largest numbers that weir bound takes.
const (
	mostInstances = 100_000
	mostRate      = 1e9
	mostTrip      = 10 * time.Second
)

// boundFlags is what weir bound is told.
type boundFlags struct {
	instances, regions int
	rate               float64
	trip, lease        time.Duration
	output             string
}

func newBound() *cobra.Command {
	var f boundFlags
	cmd := &cobra.Command{
		Use:   "bound FILE",
		Short: "Show what leases cost and save under the rules of a file",
		Long: `Show what leases cost and save under each rule of a file (- for standard input), for one
client whose requests are spread evenly over the instances: whether the limit can be
exceeded, how many units may lie unused at the instances, how many are lost with an
instance or a region, and the calls and bytes a second at Redis.

weir computes the figures: it sends nothing. Calls are between half and twice of the
simulated ones.`,
		Example: `  weir bound rules.yaml --instances 40 --rate 2000
  weir bound rules.yaml --instances 40 --regions 3 --rate 2000 --rtt 150ms --lease 2s`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.validate(); err != nil {
				return err
			}
			table, err := compileFile(cmd, args[0])
			if err != nil {
				return err
			}
			return f.print(cmd, table)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&f.instances, "instances", 2, "`number` of instances of weir")
	flags.IntVar(&f.regions, "regions", 1, "`number` of regions that the instances are spread over")
	flags.Float64Var(&f.rate, "rate", 1000, "`requests` a second of one client, at all instances together")
	flags.DurationVar(&f.trip, "rtt", time.Millisecond, "`duration` of a round trip to Redis")
	flags.DurationVar(&f.lease, "lease", 0, "`duration` of leases of rules without the field lease, as in weir serve; 0 for none")
	addOutput(cmd, &f.output)
	return cmd
}

func (f *boundFlags) validate() error {
	switch {
	case f.instances < 1 || f.instances > mostInstances:
		return usage("--instances: %d is out of range; write 1 to %d", f.instances, mostInstances)
	case f.regions < 1 || f.regions > f.instances:
		return usage("--regions: %d is out of range; write 1 to the number of instances, %d", f.regions, f.instances)
	case !(f.rate > 0 && f.rate <= mostRate):
		return usage("--rate: %v is out of range; write requests a second, more than 0 and at most %.0f", f.rate, mostRate)
	case f.trip < 0 || f.trip > mostTrip:
		return usage("--rtt: %v is out of range; write 0 to %v", f.trip, mostTrip)
	case f.lease != 0 && (f.lease < weir.MinLease || f.lease > weir.MaxLease):
		return usage("--lease: %v is out of range; write %v to %s, or 0 for none", f.lease, weir.MinLease, notation.FormatDuration(weir.MaxLease))
	}
	return nil
}

// bound is what leases of one limit come to.
type bound struct {
	Rule     string  `json:"rule"`
	Tier     string  `json:"tier,omitempty"`
	Limit    string  `json:"limit"`
	Leased   bool    `json:"leased"`
	Exceeded int64   `json:"exceeded_units"`
	Unused   int64   `json:"unused_units"`
	Instance int64   `json:"lost_instance_units"`
	Region   int64   `json:"lost_region_units"`
	Calls    float64 `json:"calls_per_second"`
	Bytes    float64 `json:"bytes_per_second"`

	spoken string // Limit, for people
}

func (f *boundFlags) of(limit *weir.Compiled) bound {
	got := lease.Foresee(limit, lease.Load{Processes: f.instances, Rate: f.rate, RoundTrip: f.trip, Term: f.lease})
	b := bound{Limit: limit.Limit().String(), Leased: got.Leased, Instance: got.Unused, Calls: got.Calls, Bytes: got.Calls * bytesOfCheck}
	if got.Leased {
		b.Bytes = got.Calls * bytesOfMessage
	}
	inRegion := (f.instances + f.regions - 1) / f.regions
	b.Region = min(limit.Capacity(), got.Unused*int64(inRegion))
	b.Unused = min(limit.Capacity(), got.Unused*int64(f.instances))
	return b
}

func (f *boundFlags) print(cmd *cobra.Command, table *rule.Table) error {
	all := []bound{}
	for _, r := range table.Rules() {
		for _, tier := range append([]string{""}, slices.Sorted(maps.Keys(r.Tiers))...) {
			for _, level := range append([]string{""}, r.Levels()...) {
				limits := r.Limits(level+":", tier)
				places := slices.ContainsFunc(limits, func(l *weir.Compiled) bool { return l.Algorithm() == weir.InFlight })
				for _, limit := range limits {
					b := f.of(limit)
					b.spoken = spokenLimit(r, limit)
					if places && b.Leased { // each request asks for its place, and for all other limits in the same call
						b = bound{Limit: b.Limit, Calls: f.rate, Bytes: f.rate * bytesOfCheck, spoken: b.spoken}
					}
					b.Rule, b.Tier = r.ID, tier
					all = append(all, b)
				}
			}
		}
	}
	if f.output == "json" {
		return writeJSON(cmd.OutOrStdout(), all)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "One client with %v requests/s at %s in %s, %v to Redis:\n\n", f.rate, notation.Count(f.instances, "instance"), notation.Count(f.regions, "region"), f.trip)
	rows := make([][]string, len(all))
	for i, b := range all {
		rows[i] = []string{
			column(b.Rule), column(cmp.Or(b.Tier, "-")), b.spoken, map[bool]string{true: "yes", false: "no"}[b.Leased],
			fmt.Sprint(b.Exceeded), fmt.Sprint(b.Unused), fmt.Sprint(b.Instance), fmt.Sprint(b.Region), figure(b.Calls), figure(b.Bytes),
		}
	}
	printTable(&out, []string{"RULE", "TIER", "LIMIT", "LEASED", "EXCEEDED", "UNUSED", "LOST INSTANCE", "LOST REGION", "CALLS/S", "BYTES/S"}, rows)
	out.WriteString(`
EXCEEDED is by how many units a limit can be exceeded, beyond what its algorithm allows, as
long as Redis loses no writes. UNUSED units are the most that are on lease and not spent, at
all instances. LOST units count as used when the lease of a dead instance, or of all those
of a region, ends. Without a lease, each request asks Redis. The figures are those of
requests that cost 1; calls of /v1/reserve ask Redis in any case.
`)
	return say(cmd, "%s", out.String())
}

// figure is a number with about two digits.
func figure(x float64) string {
	if x < 10 {
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", math.Round(x))
}
