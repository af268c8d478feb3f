package redislink_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/redislink"
	"github.com/weirhq/weir/internal/testkit/testredis"
)

var errGone = errors.New("shop: the store is unavailable")

func connTo(t *testing.T, addr string) redislink.Conn {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	c := redislink.Conn{Name: "shop", Client: redislink.Given(client), Unavailable: errGone}
	if err := c.Check(time.Minute); err != nil || c.Timeout != time.Minute {
		t.Fatal(c.Timeout, err)
	}
	return c
}

func TestCheck(t *testing.T) {
	for want, c := range map[string]redislink.Conn{
		"shop: New requires a client": {Name: "shop", Client: redislink.Given(nil)},
		"shop: Timeout is negative":   {Name: "shop", Client: redislink.Late(nil).Client, Timeout: -1},
	} {
		if err := c.Check(time.Second); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// An answer is read in order. What is missing, or is something else, makes all of it an error,
// also within a list.
func TestAnswer(t *testing.T) {
	c := connTo(t, testredis.Start(t).Addr)
	run := func(text string) *redislink.Answer {
		return c.Run(t.Context(), rueidis.NewLuaScript("return "+text), []string{"k"}, nil)
	}
	a := run(`{"word", 7, "8", {1, "x"}, {{1}, {2}}}`)
	word, seven, eight, list := a.Text(), a.Int(), a.Int(), a.List()
	if word != "word" || seven != 7 || eight != 8 || list.Len() != 2 || list.Int() != 1 || string(list.Bytes()) != "x" || len(a.List().Lists()) != 2 || a.Len() != 0 {
		t.Errorf("%v %v %v: %v", word, seven, eight, a.Err())
	}
	if got, err := redislink.Result(seven, a); got != 7 || err != nil {
		t.Error(got, err)
	}
	for text, read := range map[string]func(*redislink.Answer){
		`{}`:      func(a *redislink.Answer) { a.Text() },
		`{1}`:     func(a *redislink.Answer) { a.Text() },
		`{"one"}`: func(a *redislink.Answer) { a.Int() },
		`{2}`:     func(a *redislink.Answer) { a.List() },
		`{{}}`:    func(a *redislink.Answer) { a.List().Int() },
		`{{3}}`:   func(a *redislink.Answer) { a.List().Lists() },
		`{4}`:     func(a *redislink.Answer) { a.Must(a.Int() == 5) },
	} {
		a := run(text)
		read(a)
		if got, err := redislink.Result(1, a); got != 0 || err == nil || !strings.HasPrefix(err.Error(), "shop: unexpected answer") {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

// Errors tell what happened, what to do, and whether a change may have been made.
func TestExplain(t *testing.T) {
	server := testredis.Start(t)
	c := connTo(t, server.Addr)
	script := rueidis.NewLuaScript(`return {redis.call("INCR", KEYS[1])}`)
	want := func(err error, gone bool, text string) {
		t.Helper()
		if err == nil || errors.Is(err, errGone) != gone || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %s", err, text)
		}
	}
	run := func(ctx context.Context) error { return c.Run(ctx, script, []string{"number"}, nil).Err() }
	server.Do("SADD", "number", "mine")
	want(run(t.Context()), false, `shop: something else uses "number" or a key beside it; choose another prefix`)
	server.Do("DEL", "number")
	server.FillMemory()
	want(run(t.Context()), true, "nothing was changed: redis: OOM")
	server.FreeMemory()
	if err := run(t.Context()); err != nil {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	want(run(ended), false, "canceled")
	server.Pause()
	defer server.Resume()
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	want(run(short), false, "shop: the change may have been made: context deadline exceeded")
	c.Timeout = 20 * time.Millisecond
	want(run(t.Context()), true, "no answer within 20ms")
	c.Client = redislink.Late(func() (rueidis.Client, error) { return nil, errors.New("refused") }).Client
	want(run(t.Context()), true, "nothing was changed: no connection to redis: refused")
}
