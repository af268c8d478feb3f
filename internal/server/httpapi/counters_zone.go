package httpapi

import (
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/manage"
)

// maxZones is how many time zones are remembered. There are fewer than that.
const maxZones = 1000

// zones are time zones by name. To find one reads a file, which is too slow to do it for
// every call.
type zones struct {
	mu    sync.RWMutex
	known map[string]*time.Location
}

// zone finds a time zone. No name is UTC, which the store takes nil for.
func (h *Handler) zone(name, field string) (*time.Location, error) {
	if name == "" {
		return nil, nil
	}
	zone := h.zones.find(name)
	if zone == nil {
		return nil, badField.of("%s: there is no time zone %q; write its IANA name, such as Asia/Shanghai.", field, manage.Clip(name)).in(field)
	}
	return zone, nil
}

// find returns nil if there is no such zone, or if it is another one elsewhere.
func (z *zones) find(name string) *time.Location {
	z.mu.RLock()
	zone := z.known[name]
	z.mu.RUnlock()
	if zone != nil {
		return zone
	}
	if len(name) > counter.MaxZoneLen || name == "Local" || name == "localtime" || strings.ContainsFunc(name, outsideZones) {
		return nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.known == nil {
		z.known = map[string]*time.Location{}
	}
	if len(z.known) < maxZones {
		z.known[name] = zone
	}
	return zone
}

// outsideZones are characters that no time zone has in its name. Names become paths of
// files.
func outsideZones(r rune) bool {
	letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	return !letter && (r < '0' || r > '9') && !strings.ContainsRune("_-+/", r)
}
