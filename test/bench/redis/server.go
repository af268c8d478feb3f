package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// server is the Redis that everybody shares, as the harness sees it: by a
// connection of its own.
type server struct {
	client rueidis.Client
}

func connect(addr string) (server, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
	if err != nil {
		return server{}, fmt.Errorf("redis: %s does not answer: %w", addr, err)
	}
	return server{client}, nil
}

func (s server) empty() error {
	return s.client.Do(context.Background(), s.client.B().Flushall().Sync().Build()).Error()
}

// info returns a field of INFO.
func (s server) info(section, field string) (string, error) {
	text, err := s.client.Do(context.Background(), s.client.B().Info().Section(section).Build()).ToString()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && name == field {
			return value, nil
		}
	}
	return "", fmt.Errorf("redis: INFO %s has no %s", section, field)
}

func (s server) number(section, field string) (float64, error) {
	text, err := s.info(section, field)
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(text, 64)
}

// processor returns the microseconds of processor time that the server has used.
func (s server) processor() (float64, error) {
	user, err := s.number("cpu", "used_cpu_user")
	if err != nil {
		return 0, err
	}
	system, err := s.number("cpu", "used_cpu_sys")
	return (user + system) * 1e6, err
}

// memory is what the server has allocated, without the buffers of connections,
// which come and go.
func (s server) memory() (float64, error) {
	all, err := s.number("memory", "used_memory")
	if err != nil {
		return 0, err
	}
	connections, err := s.number("memory", "mem_clients_normal")
	return all - connections, err
}

// usage is the sum of MEMORY USAGE over all keys.
func (s server) usage() (bytes int64, err error) {
	ctx := context.Background()
	for cursor := uint64(0); ; {
		page, err := s.client.Do(ctx, s.client.B().Scan().Cursor(cursor).Count(1000).Build()).AsScanEntry()
		if err != nil {
			return 0, err
		}
		asks := make([]rueidis.Completed, len(page.Elements))
		for i, key := range page.Elements {
			asks[i] = s.client.B().MemoryUsage().Key(key).Samples(0).Build()
		}
		for _, answer := range s.client.DoMulti(ctx, asks...) {
			n, err := answer.AsInt64()
			if err != nil {
				return 0, err
			}
			bytes += n
		}
		if cursor = page.Cursor; cursor == 0 {
			return bytes, nil
		}
	}
}
