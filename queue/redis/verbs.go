package redis

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/redislink"
	"github.com/weirhq/weir/queue"
)

// Push implements queue.Store.
func (s *Store) Push(ctx context.Context, name string, w queue.Work) (queue.Pushed, error) {
	terms, err := s.Terms(name)
	if err != nil {
		return queue.Pushed{}, err
	}
	if err := terms.CheckWork(w); err != nil {
		return queue.Pushed{}, err
	}
	a := s.call(ctx, name, pushScript, w.ID, rueidis.BinaryString(w.Payload))
	word := a.Text()
	if word == "full" {
		return queue.Pushed{}, queue.ErrFull
	}
	p := queue.Pushed{Number: a.Int(), Position: a.Int(), State: queue.State(word), Duplicate: word != "new"}
	if !p.Duplicate {
		p.State = queue.Ready
	}
	slot := slot(a, terms)
	p.Wait = terms.Wait(slot, micros(a), p.Position)
	return redislink.Result(p, a)
}

// Lease implements queue.Store.
func (s *Store) Lease(ctx context.Context, name string, ask queue.Ask) (queue.Batch, error) {
	ask, err := queue.CheckAsk(ask)
	if err != nil {
		return queue.Batch{}, err
	}
	secret := queue.NewSecret()
	a := s.call(ctx, name, leaseScript, strconv.Itoa(ask.Max), strconv.FormatInt(ask.Ahead.Microseconds(), 10), secret)
	b := queue.Batch{Wait: weir.Never}
	if wait := a.Int(); wait >= 0 {
		b.Wait = time.Duration(wait) * time.Microsecond
	}
	now := micros(a)
	for _, part := range a.List().Lists() {
		b.Leases = append(b.Leases, lease(part, secret, now))
	}
	return redislink.Result(b, a)
}

// Ack implements queue.Store.
func (s *Store) Ack(ctx context.Context, name, token string) error {
	a, _ := s.end(ctx, name, token, ackScript)
	return a.Err()
}

// Nack implements queue.Store.
func (s *Store) Nack(ctx context.Context, name, token string, f queue.Failure) (queue.Outcome, error) {
	bury := "0"
	if f.Bury {
		bury = "1"
	}
	a, said := s.end(ctx, name, token, nackScript, queue.Cut(f.Reason), bury)
	if said == "dead" {
		return queue.Outcome{Dead: true}, nil
	}
	return redislink.Result(queue.Outcome{RetryAfter: length(micros(a))}, a)
}

// Extend implements queue.Store.
func (s *Store) Extend(ctx context.Context, name, token string) (time.Duration, error) {
	a, _ := s.end(ctx, name, token, extendScript)
	return redislink.Result(length(micros(a)), a)
}

// Return implements queue.Store.
func (s *Store) Return(ctx context.Context, name, token string) error {
	a, _ := s.end(ctx, name, token, returnScript)
	return a.Err()
}

// end runs a script on the item of a lease, and returns the word with which it answers.
func (s *Store) end(ctx context.Context, name, token string, script *rueidis.Lua, args ...string) (a *redislink.Answer, said string) {
	if _, err := s.Terms(name); err != nil {
		return s.conn.Failed(err), ""
	}
	number, secret, err := queue.ParseToken(token)
	if err != nil {
		return s.conn.Failed(err), ""
	}
	a = s.call(ctx, name, script, append([]string{strconv.FormatInt(number, 10), secret}, args...)...)
	if said = a.Text(); said == "lost" {
		a.Fail(queue.ErrLost)
	}
	return a, said
}

// Stats implements queue.Store.
func (s *Store) Stats(ctx context.Context, name string) (queue.Stats, error) {
	terms, err := s.Terms(name)
	if err != nil {
		return queue.Stats{}, err
	}
	a := s.call(ctx, name, statsScript)
	st := queue.Stats{
		Ready: a.Int(), Delayed: a.Int(), Leased: a.Int(), Capacity: int64(terms.Capacity),
		Dead: a.Int(), Dropped: a.Int(),
	}
	oldest, slot, now := micros(a), slot(a, terms), micros(a)
	if st.Ready > 0 {
		st.Age, st.Wait = length(now-oldest), terms.Wait(slot, now, 1)
	}
	return redislink.Result(st, a)
}

// DeadLetters implements queue.Store.
func (s *Store) DeadLetters(ctx context.Context, name string, after int64, limit int) ([]queue.DeadLetter, error) {
	if err := queue.CheckPage(after, limit); err != nil {
		return nil, err
	}
	a := s.call(ctx, name, deadScript, strconv.FormatInt(after, 10), strconv.Itoa(limit))
	var letters []queue.DeadLetter
	for _, part := range a.Lists() {
		letters = append(letters, letter(part))
	}
	return redislink.Result(letters, a)
}

// Requeue implements queue.Store.
func (s *Store) Requeue(ctx context.Context, name string, numbers ...int64) (int, error) {
	a := s.letters(ctx, name, requeueScript, numbers)
	moved, full := int(a.Int()), a.Int()
	if full == 1 {
		return moved, queue.ErrFull
	}
	return redislink.Result(moved, a)
}

// Delete implements queue.Store.
func (s *Store) Delete(ctx context.Context, name string, numbers ...int64) (int, error) {
	a := s.letters(ctx, name, deleteScript, numbers)
	return redislink.Result(int(a.Int()), a)
}

func (s *Store) letters(ctx context.Context, name string, script *rueidis.Lua, numbers []int64) *redislink.Answer {
	if err := queue.CheckNumbers(numbers); err != nil {
		return s.conn.Failed(err)
	}
	args := make([]string, len(numbers))
	for i, n := range numbers {
		args[i] = strconv.FormatInt(n, 10)
	}
	return s.call(ctx, name, script, args...)
}

// Watch implements queue.Store. It also calls wake when it starts to listen, because it
// may have missed notifications before.
func (s *Store) Watch(ctx context.Context, name string, wake func()) error {
	k := s.queues[name]
	if k == nil {
		return queue.ErrNoQueue
	}
	redislink.Listen(ctx, s.conn.Client, k.channel, s.poll, wake)
	return ctx.Err()
}

func micros(a *redislink.Answer) weir.Micros { return weir.Micros(a.Int()) }

func length(m weir.Micros) time.Duration { return time.Duration(m) * time.Microsecond }

func slot(a *redislink.Answer, t *queue.Terms) queue.Pace {
	return queue.Pace{Next: micros(a), Part: a.Int(), Rate: t.Rate}
}

func lease(a *redislink.Answer, secret string, now weir.Micros) queue.Lease {
	l := queue.Lease{
		Number: a.Int(), ID: a.Text(), Payload: a.Bytes(), Tries: int(a.Int()), Pushed: micros(a),
		Release: micros(a), Expires: micros(a),
	}
	l.Token, l.Delay = queue.Token(l.Number, secret), length(l.Release-now)
	return l
}

func letter(a *redislink.Answer) queue.DeadLetter {
	return queue.DeadLetter{
		Number: a.Int(), ID: a.Text(), Payload: a.Bytes(), Tries: int(a.Int()), Pushed: micros(a),
		Died: micros(a), Reason: a.Text(),
	}
}
