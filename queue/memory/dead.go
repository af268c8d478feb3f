package memory

import (
	"bytes"
	"context"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/queue"
)

// DeadLetters implements queue.Store.
func (s *Store) DeadLetters(ctx context.Context, name string, after int64, limit int) ([]queue.DeadLetter, error) {
	if err := queue.CheckPage(after, limit); err != nil {
		return nil, err
	}
	var letters []queue.DeadLetter
	err := s.with(ctx, name, func(l *line, _ weir.Micros) (bool, error) {
		from, _ := l.findDead(after + 1)
		size := 0
		for _, i := range l.dead[from:min(len(l.dead), from+limit)] {
			if size >= queue.MaxPageBytes {
				break
			}
			size += len(i.payload)
			letters = append(letters, queue.DeadLetter{
				Number: i.number, ID: i.id, Payload: bytes.Clone(i.payload), Tries: i.tries,
				Pushed: i.pushed, Died: i.died, Reason: i.reason,
			})
		}
		return false, nil
	})
	return letters, err
}

// Requeue implements queue.Store.
func (s *Store) Requeue(ctx context.Context, name string, numbers ...int64) (int, error) {
	moved := 0
	err := s.letters(ctx, name, numbers, func(l *line, i *item, now weir.Micros) error {
		if l.length() >= l.terms.Capacity {
			return queue.ErrFull
		}
		l.remove(i)
		l.append(&item{id: i.id, payload: i.payload, pushed: now}, now)
		moved++
		return nil
	})
	return moved, err
}

// Delete implements queue.Store.
func (s *Store) Delete(ctx context.Context, name string, numbers ...int64) (int, error) {
	deleted := 0
	err := s.letters(ctx, name, numbers, func(l *line, i *item, _ weir.Micros) error {
		l.remove(i)
		deleted++
		return nil
	})
	return deleted, err
}

// letters runs f on each of the numbers that is a dead letter, up to the first error.
func (s *Store) letters(ctx context.Context, name string, numbers []int64, f func(*line, *item, weir.Micros) error) error {
	if err := queue.CheckNumbers(numbers); err != nil {
		return err
	}
	return s.with(ctx, name, func(l *line, now weir.Micros) (bool, error) {
		idle := len(l.ready) == 0
		var err error
		for _, n := range numbers {
			if i := l.items[n]; err == nil && i != nil && i.state == queue.Dead {
				err = f(l, i, now)
			}
		}
		return idle && len(l.ready) > 0, err
	})
}
