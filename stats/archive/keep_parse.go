package archive

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/internal/duration"
	"github.com/weirhq/weir/internal/setting"
)

// ParseKeep reads for how long slots are kept, as it is written in a configuration:
// seconds=1h,minutes=1d,hours=30d,days=366d. What is not written is the default.
func ParseKeep(text string) (Keep, error) {
	var k Keep
	all, err := setting.Parse(text)
	if err != nil || len(all) > 1 {
		return k, fmt.Errorf("archive: %q cannot be read; write it as seconds=1h,minutes=1d,hours=30d,days=366d", text)
	}
	fields := map[string]*time.Duration{"seconds": &k.Second, "minutes": &k.Minute, "hours": &k.Hour, "days": &k.Day}
	for _, s := range all {
		for _, o := range append(s.Options, setting.Option{Name: s.Name, Value: s.Value}) {
			field := fields[o.Name]
			if field == nil {
				return k, fmt.Errorf("archive: there is nothing to keep called %q; use seconds, minutes, hours, days", o.Name)
			}
			if *field != 0 {
				return k, fmt.Errorf("archive: %s is there twice; write it once", o.Name)
			}
			if *field, err = duration.Parse(o.Value); err != nil || *field <= 0 {
				return k, fmt.Errorf("archive: %s: %q is no time; write it as 90m, 2h or 30d", o.Name, o.Value)
			}
		}
	}
	_, err = k.ladders()
	return k, err
}
