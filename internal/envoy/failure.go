package envoy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/suggest"
	"github.com/weirhq/weir/rule"
)

// Failure is what happens to a request while the store cannot be asked.
type Failure uint8

const (
	FailOpen   Failure = iota // it passes
	FailClosed                // it is over the limit
	FailLocal                 // this instance goes on by itself, with its share of the limit
	FailError                 // the call fails, so that Envoy's failure_mode_deny decides
)

var failureNames = []string{FailOpen: "open", FailClosed: "closed", FailLocal: "local", FailError: "error"}

// String returns the word as it is written in a file.
func (f Failure) String() string { return failureNames[f] }

// Policy is what the engine has to do. To it, an error is a refusal.
func (f Failure) Policy() rule.Failure {
	switch f {
	case FailClosed, FailError:
		return rule.Closed
	case FailLocal:
		return rule.Local
	}
	return rule.Open
}

func parseFailure(text string) (Failure, error) {
	if i := slices.Index(failureNames, text); i >= 0 {
		return Failure(i), nil
	}
	if near := suggest.Nearest(text, failureNames); near != "" {
		return FailOpen, fmt.Errorf("%q is unknown; did you mean %q?", text, near)
	}
	return FailOpen, fmt.Errorf("%q is unknown; choose one of %s", text, strings.Join(failureNames, ", "))
}
