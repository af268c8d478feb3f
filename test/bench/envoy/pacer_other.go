//go:build !linux

package envoy

import "time"

// pacer waits for instants, as exactly as Go does.
type pacer struct{}

func newPacer() (*pacer, error) { return &pacer{}, nil }

func (*pacer) close() {}

func (*pacer) until(due time.Time) error {
	time.Sleep(time.Until(due))
	return nil
}
