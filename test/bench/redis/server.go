package redis

import (
	"fmt"
	"strconv"

	"github.com/weirhq/weir/internal/testredis"
)

// server is the Redis that everybody shares, as the harness sees it.
type server struct{ *testredis.Server }

func (s server) empty() { s.Do("FLUSHALL", "SYNC") }

// sum adds up fields of a section of INFO.
func (s server) sum(section string, fields ...string) (sum float64, err error) {
	for _, field := range fields {
		text, err := s.Info(section, field)
		if err != nil {
			return 0, err
		}
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0, fmt.Errorf("redis: INFO %s: %s is %q", section, field, text)
		}
		sum += n
	}
	return sum, nil
}

// processor returns the microseconds of processor time that the server has used.
func (s server) processor() (float64, error) {
	seconds, err := s.sum("cpu", "used_cpu_user", "used_cpu_sys")
	return seconds * 1e6, err
}

// memory is what the server has allocated, without the buffers of connections,
// which come and go.
func (s server) memory() (float64, error) {
	all, err := s.sum("memory", "used_memory")
	if err != nil {
		return 0, err
	}
	connections, err := s.sum("memory", "mem_clients_normal")
	return all - connections, err
}

// usage is the sum of MEMORY USAGE over all keys.
func (s server) usage() (int64, error) {
	return strconv.ParseInt(s.Do("EVAL", `
		local sum = 0
		for _, key in ipairs(redis.call('KEYS', '*')) do
			sum = sum + redis.call('MEMORY', 'USAGE', key, 'SAMPLES', '0')
		end
		return sum`, "0"), 10, 64)
}
