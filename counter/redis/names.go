package redis

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/counter"
)

// scanned is how many keys Redis looks at in one step of a list of names: less than a millisecond
// of its time.
const scanned = 1000

var (
	globber   = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)
	unescaper = strings.NewReplacer("%25", "%", "%7B", "{", "%7D", "}", "%3A", ":")
)

// Names implements counter.Store. It looks at all keys of the database, step by step, for at most half
// of the timeout, and until it has more than n names.
func (s *Store) Names(ctx context.Context, n int) (counter.Names, error) {
	if err := counter.ValidateNames(n); err != nil {
		return counter.Names{}, err
	}
	if err := ctx.Err(); err != nil {
		return counter.Names{}, err
	}
	found, more := map[counter.Named]string{}, false
	err := s.conn.Do(ctx, func(ctx context.Context, client rueidis.Client) error {
		until := time.Now().Add(s.conn.Timeout / 2)
		for _, node := range client.Nodes() { // replicas have the same names again
			for cursor, begun := uint64(0), false; !begun || cursor != 0; begun = true {
				if more = len(found) > n || time.Now().After(until); more {
					return nil
				}
				page, err := node.Do(ctx, node.B().Scan().Cursor(cursor).Match(globber.Replace(s.prefix)+"*").Count(scanned).Build()).AsScanEntry()
				if err != nil {
					return err
				}
				for _, key := range page.Elements {
					if one, ok := named(strings.TrimPrefix(key, s.prefix)); ok {
						found[one] = key
					}
				}
				cursor = page.Cursor
			}
		}
		return nil
	})
	if err == nil {
		var names counter.Names
		if names, err = s.withThresholds(ctx, found, n, more); err == nil {
			return names, nil
		}
	}
	return counter.Names{}, s.conn.Explain("", err)
}

// withThresholds adds what only the hash of a hot list tells.
func (s *Store) withThresholds(ctx context.Context, found map[counter.Named]string, n int, more bool) (counter.Names, error) {
	all := make([]counter.Named, 0, len(found))
	for one := range found {
		all = append(all, one)
	}
	names := counter.NewNames(all, n, more)
	err := s.conn.Do(ctx, func(ctx context.Context, client rueidis.Client) error {
		for i := range names.All {
			one := &names.All[i]
			if one.Kind != counter.KindHot {
				continue
			}
			values, err := client.Do(ctx, client.B().Hmget().Key(found[*one]).Field("threshold", "cool").Build()).AsIntSlice()
			if err != nil || len(values) != 2 {
				return err
			}
			one.Threshold, one.Cool = values[0], values[1]
		}
		return nil
	})
	return names, err
}

// named is what a key stands for, without the prefix. Of things with several keys, one counts.
func named(key string) (one counter.Named, ok bool) {
	head, name, ok := strings.Cut(key, "{")
	name, ok2 := strings.CutSuffix(name, "}")
	parts := strings.Split(head, ":")
	if !ok || !ok2 || len(parts) < 3 {
		return one, false
	}
	one.Name = unescaper.Replace(name)
	switch kind := parts[0]; {
	case kind == "s" || kind == "h":
		seconds, err := strconv.ParseInt(parts[1], 10, 32)
		one.Kind, one.Span = counter.KindBoard, time.Duration(seconds)*time.Second
		if kind == "h" {
			one.Kind = counter.KindHot
		}
		return one, err == nil && parts[2] == "meta"
	case kind == "b":
		one.Kind, ok = counter.KindBoard, len(parts) == 4 && parts[3] == "meta"
		parts = parts[:3]
	case kind == "c":
		one.Kind = counter.KindCounter
	case kind == "d":
		one.Kind = counter.KindDistinct
	case strings.HasPrefix(kind, "v"):
		one.Kind = counter.KindDistribution
	default:
		return one, false
	}
	if len(parts) == 4 { // NAME{GROUP}
		one.Group, one.Name = one.Name, unescaper.Replace(parts[3])
	}
	window, err := counter.ParseWindow(parts[1])
	one.Window, one.Zone = window, unescaper.Replace(parts[2])
	return one, ok && err == nil && len(parts) <= 4
}
