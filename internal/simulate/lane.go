package simulate

import (
	"errors"
	"slices"
	"strings"

	"github.com/weirhq/weir"
)

// Lane is one algorithm to play the traffic against.
type Lane struct {
	Name  string
	Limit *weir.Compiled
}

// shaping is the name of the leaky bucket as a queue, which behaves unlike the
// meter in everything that one would look at.
const shaping = "leaky_bucket shape"

// LaneNames returns the names that Lanes knows, simplest first.
func LaneNames() []string {
	var names []string
	for _, a := range weir.Algorithms() {
		names = append(names, a.String())
	}
	return append(names, shaping)
}

// Lanes makes a lane of the limit for each name. Burst, buckets and count_denied
// go along wherever the algorithm knows them.
func Lanes(limit weir.Limit, names ...string) ([]Lane, error) {
	var lanes []Lane
	for _, name := range names {
		lane, err := laneNamed(limit, name)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(lanes, func(l Lane) bool { return l.Name == lane.Name }) {
			lanes = append(lanes, lane)
		}
	}
	return lanes, nil
}

// AllLanes makes a lane for every algorithm that can keep the limit, and tells
// why the others, such as a log of a billion units, are left out. A valid limit
// has a lane at least.
func AllLanes(limit weir.Limit) (lanes []Lane, leftOut []string) {
	for _, name := range LaneNames() {
		lane, err := laneNamed(limit, name)
		var invalid *weir.InvalidError
		switch {
		case errors.As(err, &invalid):
			leftOut = append(leftOut, name+" is left out: "+invalid.Reason+".")
		case err == nil:
			lanes = append(lanes, lane)
		}
	}
	return lanes, leftOut
}

func laneNamed(limit weir.Limit, name string) (Lane, error) {
	word, shape := strings.CutSuffix(name, " shape")
	algorithm, err := weir.ParseAlgorithm(word)
	if err != nil {
		return Lane{}, err
	}
	l := weir.Limit{Algorithm: algorithm, N: limit.N, Period: limit.Period, Shape: shape}
	switch algorithm {
	case weir.TokenBucket, weir.LeakyBucket:
		l.Burst = limit.Burst
	default:
		l.CountDenied = limit.CountDenied
	}
	if algorithm == weir.SlidingBuckets {
		l.Buckets = limit.Buckets
	}
	compiled, err := l.Compile()
	if err != nil {
		return Lane{}, err
	}
	return Lane{Name: name, Limit: compiled}, nil
}
