package redis

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/counter"
)

// escape writes a name so that it cannot be taken for more than a name, nor split a
// hash tag.
func escape(name string) string { return escaper.Replace(name) }

var escaper = strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D", ":", "%3A")

func calendar(w counter.Window, zone *time.Location) string {
	return w.String() + ":" + escape(counter.ZoneName(zone))
}

// tag is what a counter shares a node with.
func tag(k *counter.Key) string {
	if k.Group != "" {
		return "g" + k.Group
	}
	return "n" + k.Name
}

func (s *Store) counterKey(kind string, k *counter.Key) string {
	key := s.prefix + kind + ":" + calendar(k.Window, k.Zone)
	if k.Group != "" {
		return key + ":" + escape(k.Name) + "{" + escape(k.Group) + "}"
	}
	return key + "{" + escape(k.Name) + "}"
}

func (s *Store) sequenceKey(name string) string { return s.prefix + "i{" + escape(name) + "}" }

// boardKeys are a hash, and the ring of windows.
func (s *Store) boardKeys(b *counter.Board) []string {
	ring := counter.BoardWindows
	if b.Window == counter.Ever {
		ring = 1
	}
	head, name := s.prefix+"b:"+calendar(b.Window, b.Zone)+":", "{"+escape(b.Name)+"}"
	keys := make([]string, 0, ring+1)
	keys = append(keys, head+"meta"+name)
	for i := range ring {
		keys = append(keys, head+strconv.Itoa(i)+name)
	}
	return keys
}

// slidingKeys are the sum, a hash, the ring of steps, and what else there is.
func (s *Store) slidingKeys(kind, name string, window time.Duration, more ...string) []string {
	head, name := s.prefix+kind+":"+strconv.FormatInt(int64(window/time.Second), 10)+":", "{"+escape(name)+"}"
	keys := make([]string, 0, counter.Steps+3+len(more))
	keys = append(keys, head+"sum"+name, head+"meta"+name)
	for i := range counter.Steps + 1 {
		keys = append(keys, head+strconv.Itoa(i)+name)
	}
	for _, what := range more {
		keys = append(keys, head+what+name)
	}
	return keys
}

// windowOf is what a script is told of a window: its length in seconds, or its name if
// its length varies by more than an hour.
func windowOf(w counter.Window) string {
	if w == counter.Month || w == counter.Year {
		return w.String()
	}
	return itoa(int64(w.Width() / time.Second))
}

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
