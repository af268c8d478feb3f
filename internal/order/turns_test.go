package order

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Turns come in order, one at a time, and leave nothing behind.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns Turns[string]
		var order []int
		first, err := turns.Join(t.Context(), "k")
		if err != nil || !turns.Taken("k") || turns.Taken("other") {
			t.Fatal(err)
		}
		for i := range 5 {
			go func() {
				turn, err := turns.Join(t.Context(), "k")
				if err != nil {
					t.Error(err)
				}
				order = append(order, i)
				turn.End()
			}()
			synctest.Wait()
		}
		other, err := turns.Join(t.Context(), "other")
		if err != nil {
			t.Fatal(err)
		}
		other.End()
		if len(order) > 0 {
			t.Errorf("%v went before their turn", order)
		}
		first.End()
		synctest.Wait()
		if got := fmt.Sprint(order); got != "[0 1 2 3 4]" || len(turns.lines) != 0 {
			t.Errorf("%s, and %d lines are left", got, len(turns.lines))
		}
	})
}

// Who gives up frees the place, also when the turn comes at that moment.
func TestGivingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns Turns[string]
		first, _ := turns.Join(t.Context(), "k")
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp := make(chan error)
		go func() {
			_, err := turns.Join(ctx, "k")
			gaveUp <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-gaveUp; err != context.Canceled {
			t.Errorf("%v", err)
		}
		first.End()
		if len(turns.lines) != 0 {
			t.Error("a line is left")
		}
	})
	var turns Turns[string]
	var all sync.WaitGroup
	for i := range 500 {
		ctx, cancel := context.WithCancel(t.Context())
		all.Go(func() {
			defer cancel()
			turn, err := turns.Join(ctx, fmt.Sprint(i%3))
			if err != nil {
				return
			}
			turns.Wake(fmt.Sprint(i % 3))
			turn.End()
		})
		if i%2 == 0 {
			all.Go(cancel)
		}
	}
	all.Wait()
	if len(turns.lines) != 0 {
		t.Errorf("%d lines are left", len(turns.lines))
	}
}

// A lock is for one caller, and who does not get it in time has nothing to give back.
func TestLock(t *testing.T) {
	var l Lock
	unlock, err := l.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Take(over); err != context.Canceled {
		t.Errorf("a second one: %v", err)
	}
	unlock()
	if again, err := l.Take(t.Context()); err != nil || l.turns.Callers() != 1 {
		t.Errorf("%v, %d callers", err, l.turns.Callers())
	} else {
		again()
	}
}

func TestWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns Turns[string]
		turns.Wake("k") // no caller waits
		turn, _ := turns.Join(t.Context(), "k")
		defer turn.End()
		go func() {
			time.Sleep(time.Second)
			turns.Wake("k")
			turns.Wake("k")
		}()
		<-turn.Woken()
	})
}

// Lines have a bound. Who moves to another line stands before those who came later, but not before
// the one in front.
func TestMove(t *testing.T) {
	var turns Turns[string]
	early := turns.Enter("a", 2)
	if turns.Enter("a", 2) == nil || turns.Enter("a", 2) != nil {
		t.Error("a line of 2 has another number of callers")
	}
	front := turns.Enter("b", 0)
	middle := turns.Enter("b", 0)
	late := turns.Enter("b", 0)
	if early.IsAhead("b") || early.IsAhead("nobody's") || !late.IsAhead("a") {
		t.Error("the order of arrival is wrong")
	}
	if early.Move("b", 3) {
		t.Error("a line of 3 took a fourth")
	}
	early.End() // again
	early.Move("b", 4)
	if !front.IsAhead("b") { // early is behind it, but came before
		t.Error("who came first is not seen")
	}
	for i, turn := range []*Turn[string]{front, early, middle, late} {
		select {
		case <-turn.due:
		default:
			if turn.due != nil {
				t.Errorf("it is not the turn of number %d", i)
			}
		}
		if turn.Key() != "b" {
			t.Errorf("%d stands at %s", i, turn.Key())
		}
		turn.End()
	}
	if turns.Callers() != 1 || !turns.Taken("a") {
		t.Errorf("%d callers are left", turns.Callers())
	}
}
