package redis

import (
	"fmt"
	"math"
	"time"
)

// zoneAt says how far the clocks of a zone are ahead around an instant, for a script
// that finds out the time by itself: what it is ahead, from when on, and the same
// before and after. It serves as long as the two clocks differ by less than a summer.
func zoneAt(now time.Time, zone *time.Location) string {
	if zone == nil || zone == time.UTC {
		return ""
	}
	now = now.In(zone)
	_, here := now.Zone()
	before, after := here, here
	from, to := int64(math.MinInt32), int64(1)<<50
	start, end := now.ZoneBounds()
	if !start.IsZero() {
		_, before = start.Add(-time.Second).Zone()
		from = start.Unix()
	}
	if !end.IsZero() {
		_, after = end.Zone()
		to = end.Unix()
	}
	return fmt.Sprintf("%d %d %d %d %d", before, from, here, to, after)
}

// around is about what time it is.
func (s *Store) around() time.Time {
	if s.clock != nil {
		return time.UnixMicro(int64(s.clock()))
	}
	return time.Now()
}
