package bench

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/testkit"
)

// Server asks a Redis what it did.
type Server struct {
	testing.TB
	client rueidis.Client
}

// NewServer returns one for the server at an address, which then notes calls of more than 200 µs.
func NewServer(t testing.TB, addr string) *Server {
	r := &Server{t, testkit.Must(rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true}))(t)}
	t.Cleanup(r.client.Close)
	r.Do("CONFIG", "SET", "slowlog-log-slower-than", "200", "slowlog-max-len", "1000000")
	return r
}

// Do sends a command.
func (r *Server) Do(command ...string) any {
	return testkit.Must(r.client.Do(context.Background(), r.client.B().Arbitrary(command...).Build()).ToAny())(r)
}

// Calls are those of functions and scripts.
type Calls struct {
	Count     int64
	Functions int64 // of these; of weir, only the store of limits calls functions
	Mean      int64 // microseconds
	Slowest   time.Duration
	Over      int64 // of more than LongestCall
}

// LongestCall is how long a call may occupy Redis.
const LongestCall = 5 * time.Millisecond

// Measure returns the calls while something is done, by the clock of Redis.
func (r *Server) Measure(do func()) (c Calls) {
	r.Do("CONFIG", "RESETSTAT")
	r.Do("SLOWLOG", "RESET")
	do()
	var micros int64
	for line := range strings.Lines(r.Do("INFO", "commandstats").(string)) {
		name, stats, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name = strings.TrimPrefix(name, "cmdstat_"); !isCall(name) {
			continue
		}
		for stat := range strings.SplitSeq(stats, ",") {
			key, value, _ := strings.Cut(stat, "=")
			n, _ := strconv.ParseInt(value, 10, 64)
			switch key {
			case "calls":
				if c.Count += n; name == function {
					c.Functions = n
				}
			case "usec":
				micros += n
			}
		}
	}
	c.Mean = micros / max(1, c.Count)
	for _, entry := range r.Do("SLOWLOG", "GET", "-1").([]any) {
		fields := entry.([]any)
		if took := time.Duration(fields[2].(int64)) * time.Microsecond; isCall(fields[3].([]any)[0].(string)) {
			if c.Slowest = max(c.Slowest, took); took > LongestCall {
				c.Over++
			}
		}
	}
	return c
}

const function = "fcall"

func isCall(command string) bool {
	command = strings.ToLower(command)
	return command == function || strings.HasPrefix(command, "eval")
}

// Field is one of INFO.
func (r *Server) Field(section, name string) string {
	for line := range strings.Lines(r.Do("INFO", section).(string)) {
		if n, value, _ := strings.Cut(strings.TrimSpace(line), ":"); n == name {
			return value
		}
	}
	r.Fatalf("INFO %s has no %s", section, name)
	return ""
}

// Number is one of INFO.
func (r *Server) Number(section, name string) float64 {
	return testkit.Must(strconv.ParseFloat(r.Field(section, name), 64))(r)
}

// Busy is the time that the server's main thread has run.
func (r *Server) Busy() time.Duration {
	const name = "used_cpu_%_main_thread"
	seconds := r.Number("cpu", strings.Replace(name, "%", "user", 1)) + r.Number("cpu", strings.Replace(name, "%", "sys", 1))
	return time.Duration(seconds * float64(time.Second))
}
