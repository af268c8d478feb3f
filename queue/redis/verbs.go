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
func (s *Store) Push(ctx context.Context, name string, w queue.Work) (queue.Place, error) {
	terms, err := s.Terms(name)
	if err != nil {
		return queue.Place{}, err
	}
	if err := terms.CheckWork(w); err != nil {
		return queue.Place{}, err
	}
	a, err := s.call(ctx, name, pushScript, w.ID, rueidis.BinaryString(w.Payload))
	if err != nil {
		return queue.Place{}, err
	}
	word := a.word()
	if word == "full" {
		return queue.Place{}, queue.ErrFull
	}
	p := queue.Place{Number: a.number(), Position: a.number(), State: queue.State(word), Duplicate: word != "new"}
	if !p.Duplicate {
		p.State = queue.Ready
	}
	slot := a.slot(terms)
	p.Wait = terms.Wait(slot, a.micros(), p.Position)
	return p, a.err()
}

// Lease implements queue.Store.
func (s *Store) Lease(ctx context.Context, name string, ask queue.Ask) (queue.Batch, error) {
	ask, err := queue.CheckAsk(ask)
	if err != nil {
		return queue.Batch{}, err
	}
	secret := newSecret()
	a, err := s.call(ctx, name, leaseScript, strconv.Itoa(ask.Max), strconv.FormatInt(ask.Ahead.Microseconds(), 10), secret)
	if err != nil {
		return queue.Batch{}, err
	}
	b := queue.Batch{Wait: weir.Never}
	if wait := a.number(); wait >= 0 {
		b.Wait = time.Duration(wait) * time.Microsecond
	}
	now := a.micros()
	for _, part := range a.list() {
		b.Leases = append(b.Leases, part.lease(secret, now))
		a.bad = a.bad || part.bad
	}
	return b, a.err()
}

// Ack implements queue.Store.
func (s *Store) Ack(ctx context.Context, name, token string) error {
	_, err := s.end(ctx, name, token, ackScript)
	return err
}

// Nack implements queue.Store.
func (s *Store) Nack(ctx context.Context, name, token string, f queue.Failure) (queue.Outcome, error) {
	bury := "0"
	if f.Bury {
		bury = "1"
	}
	a, err := s.end(ctx, name, token, nackScript, queue.Cut(f.Reason), bury)
	if err != nil {
		return queue.Outcome{}, err
	}
	if a.said == "dead" {
		return queue.Outcome{Dead: true}, nil
	}
	o := queue.Outcome{RetryAfter: micros(a.micros())}
	return o, a.err()
}

// Extend implements queue.Store.
func (s *Store) Extend(ctx context.Context, name, token string) (time.Duration, error) {
	a, err := s.end(ctx, name, token, extendScript)
	if err != nil {
		return 0, err
	}
	left := micros(a.micros())
	return left, a.err()
}

// Return implements queue.Store.
func (s *Store) Return(ctx context.Context, name, token string) error {
	_, err := s.end(ctx, name, token, returnScript)
	return err
}

// ending is the answer of a script about a lease.
type ending struct {
	*answer
	said string
}

// end runs a script on the item of a lease.
func (s *Store) end(ctx context.Context, name, token string, script *rueidis.Lua, args ...string) (ending, error) {
	if _, err := s.Terms(name); err != nil {
		return ending{}, err
	}
	number, secret, err := queue.ParseToken(token)
	if err != nil {
		return ending{}, err
	}
	a, err := s.call(ctx, name, script, append([]string{strconv.FormatInt(number, 10), secret}, args...)...)
	if err != nil {
		return ending{}, err
	}
	e := ending{a, a.word()}
	if e.said == "lost" {
		return e, queue.ErrLost
	}
	return e, a.err()
}

// Stats implements queue.Store.
func (s *Store) Stats(ctx context.Context, name string) (queue.Stats, error) {
	a, err := s.call(ctx, name, statsScript)
	if err != nil {
		return queue.Stats{}, err
	}
	terms := s.queues[name].terms
	st := queue.Stats{
		Ready: a.number(), Delayed: a.number(), Leased: a.number(), Capacity: int64(terms.Capacity),
		Dead: a.number(), Dropped: a.number(),
	}
	oldest, slot, now := a.micros(), a.slot(terms), a.micros()
	if st.Ready > 0 {
		st.Age, st.Wait = micros(now-oldest), terms.Wait(slot, now, 1)
	}
	return st, a.err()
}

// DeadLetters implements queue.Store.
func (s *Store) DeadLetters(ctx context.Context, name string, after int64, limit int) ([]queue.DeadLetter, error) {
	if err := queue.CheckPage(after, limit); err != nil {
		return nil, err
	}
	a, err := s.call(ctx, name, deadScript, strconv.FormatInt(after, 10), strconv.Itoa(limit))
	if err != nil {
		return nil, err
	}
	var letters []queue.DeadLetter
	for _, part := range listOf(a.parts, &a.bad) {
		letters = append(letters, part.letter())
		a.bad = a.bad || part.bad
	}
	return letters, a.err()
}

// Requeue implements queue.Store.
func (s *Store) Requeue(ctx context.Context, name string, numbers ...int64) (int, error) {
	a, err := s.letters(ctx, name, requeueScript, numbers)
	if err != nil {
		return 0, err
	}
	moved, full := int(a.number()), a.number()
	if full == 1 {
		return moved, queue.ErrFull
	}
	return moved, a.err()
}

// Delete implements queue.Store.
func (s *Store) Delete(ctx context.Context, name string, numbers ...int64) (int, error) {
	a, err := s.letters(ctx, name, deleteScript, numbers)
	if err != nil {
		return 0, err
	}
	deleted := int(a.number())
	return deleted, a.err()
}

func (s *Store) letters(ctx context.Context, name string, script *rueidis.Lua, numbers []int64) (*answer, error) {
	if err := queue.CheckNumbers(numbers); err != nil {
		return nil, err
	}
	args := make([]string, len(numbers))
	for i, n := range numbers {
		args[i] = strconv.FormatInt(n, 10)
	}
	return s.call(ctx, name, script, args...)
}

// Watch implements queue.Store. It also wakes when it begins to listen: what was said
// before was not heard.
func (s *Store) Watch(ctx context.Context, name string, wake func()) error {
	k := s.queues[name]
	if k == nil {
		return queue.ErrNoQueue
	}
	redislink.Listen(ctx, s.client, k.channel, s.poll, wake)
	return ctx.Err()
}
