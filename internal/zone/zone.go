// Package zone loads time zones by name, each once, so that equal names are equal
// locations.
package zone

import (
	"fmt"
	"sync"
	"time"
)

const maxName = 64

var known sync.Map // of *time.Location, by name; only zones that exist are in it

// Load returns the location with a name of the IANA time zone database, such as
// Europe/Berlin. Zone data is read at the first use of a name in a process.
func Load(name string) (*time.Location, error) {
	if found, ok := known.Load(name); ok {
		return found.(*time.Location), nil
	}
	if name == "" || name == "Local" || len(name) > maxName {
		return nil, fmt.Errorf("%.40q is not the name of a time zone; write one such as Europe/Berlin, Asia/Shanghai or UTC", name)
	}
	location, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("%q is not in the time zone database; write a name such as Europe/Berlin, Asia/Shanghai or UTC", name)
	}
	found, _ := known.LoadOrStore(name, location)
	return found.(*time.Location), nil
}
