package peers

import "fmt"

// Check proves that a limiter of n units limits each of the keys separately:
// exactly n are admitted to each, whatever the others do in between, the next
// one is refused, and neither helps or harms a key that was not there yet. The
// limiter must be new, have a period much longer than the check, and at least
// four keys.
func Check(l Limiter, n int, keys []string) error {
	asked, drained, untouched := keys[:len(keys)-2], keys[len(keys)-2], keys[len(keys)-1]
	for i := range n {
		for _, key := range asked {
			if !l.Take(key) {
				return fmt.Errorf("peers: %q was refused unit %d of %d", key, i+1, n)
			}
		}
	}
	for _, key := range asked {
		if l.Take(key) {
			return fmt.Errorf("peers: %q was admitted unit %d of %d", key, n+1, n)
		}
	}
	l.Drain(drained)
	if l.Take(drained) {
		return fmt.Errorf("peers: %q was admitted after all its %d units were drained", drained, n)
	}
	for i := range n {
		if !l.Take(untouched) {
			return fmt.Errorf("peers: %q was refused unit %d of %d although only others had taken", untouched, i+1, n)
		}
	}
	if l.Take(untouched) {
		return fmt.Errorf("peers: %q was admitted unit %d of %d", untouched, n+1, n)
	}
	return nil
}
