package notation

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxName = 64

	// maxKnown is how many zones are remembered. There are fewer; but clients name them,
	// and some file systems have one file under many names.
	maxKnown = 1000
)

var (
	known sync.Map // of *time.Location, by name; only zones that exist are in it
	count atomic.Int64
)

// LoadZone returns the location with a name of the IANA time zone database, such as
// Europe/Berlin. Zone data is read at the first use of a name in a process.
func LoadZone(name string) (*time.Location, error) {
	if found, ok := known.Load(name); ok {
		return found.(*time.Location), nil
	}
	if name == "" || name == "Local" || name == "localtime" || len(name) > maxName || strings.ContainsFunc(name, outside) || strings.Contains(name, "//") {
		return nil, fmt.Errorf("%.40q is not the name of a time zone; write one such as Europe/Berlin, Asia/Shanghai or UTC", name)
	}
	location, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("%q is not in the time zone database; write a name such as Europe/Berlin, Asia/Shanghai or UTC", name)
	}
	if count.Load() >= maxKnown {
		return location, nil
	}
	found, loaded := known.LoadOrStore(name, location)
	if !loaded {
		count.Add(1)
	}
	return found.(*time.Location), nil
}

// outside are characters that no time zone has in its name. Names become paths of files.
func outside(r rune) bool {
	letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	return !letter && (r < '0' || r > '9') && !strings.ContainsRune("_-+/", r)
}
