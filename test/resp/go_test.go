package resp

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

func TestGoRedis(t *testing.T) {
	address := serve(t)
	for _, version := range []int{2, 3} {
		client := redis.NewClient(&redis.Options{Addr: address, Password: token, Protocol: version, ReadTimeout: time.Minute, MaxRetries: -1})
		defer client.Close()
		ctx := t.Context()
		if err := client.Ping(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		throttle := []any{"CL.THROTTLE", fmt.Sprint("go-redis-", version), 2, 1, 60}
		var got said
		var err error
		if got.First, err = client.Do(ctx, throttle...).Int64Slice(); err != nil {
			t.Fatal(err)
		}
		var all []*redis.Cmd
		if _, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for range 3 {
				all = append(all, p.Do(ctx, throttle...))
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			numbers, _ := c.Int64Slice()
			got.Pipeline = append(got.Pipeline, numbers)
		}
		if got.Check, err = client.Do(ctx, "WEIR.CHECK", "user", fmt.Sprint("go-redis-", version), "path", "/api/x").Result(); err != nil {
			t.Fatal(err)
		}
		if m, ok := got.Check.(map[any]any); ok {
			named := map[string]any{}
			for name, value := range m {
				named[name.(string)] = value
			}
			got.Check = named
		}
		got.Error = client.Do(ctx, "WEIR.CHECK", "usr", "alice").Err().Error()
		got.Unknown = client.Do(ctx, "GET", "x").Err().Error()
		expect(t, got, version)
	}
}

// rueidis connects as it does by default, with client-side caching, and without it.
func TestRueidis(t *testing.T) {
	address := serve(t)
	for name, o := range map[string]rueidis.ClientOption{
		"usual": {}, "no-cache": {DisableCache: true}, "resp2": {DisableCache: true, AlwaysRESP2: true},
	} {
		o.InitAddress, o.Password, o.ClientName = []string{address}, token, "tests"
		client, err := rueidis.NewClient(o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		defer client.Close()
		version := 3
		if o.AlwaysRESP2 {
			version = 2
		}
		do := func(words ...string) rueidis.RedisResult {
			return client.Do(t.Context(), client.B().Arbitrary(words...).Build())
		}
		throttle := []string{"CL.THROTTLE", name, "2", "1", "60"}
		var got said
		if got.First, err = do(throttle...).AsIntSlice(); err != nil {
			t.Fatal(err)
		}
		var all rueidis.Commands
		for range 3 {
			all = append(all, client.B().Arbitrary(throttle...).Build())
		}
		for _, r := range client.DoMulti(t.Context(), all...) {
			numbers, err := r.AsIntSlice()
			if err != nil {
				t.Fatal(err)
			}
			got.Pipeline = append(got.Pipeline, numbers)
		}
		if got.Check, err = do("WEIR.CHECK", "user", name, "path", "/api/x").ToAny(); err != nil {
			t.Fatal(err)
		}
		got.Error = do("WEIR.CHECK", "usr", "alice").Error().Error()
		got.Unknown = do("GET", "x").Error().Error()
		expect(t, got, version)
	}
}

// Client-side caching is an error, not an answer that never changes.
func TestNoCaching(t *testing.T) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{serve(t)}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	command := client.B().Get().Key("x").Cache()
	if err := client.DoCache(context.Background(), command, 1e9).Error(); err == nil {
		t.Error("it was answered")
	}
}
