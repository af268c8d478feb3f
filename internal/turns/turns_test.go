package turns

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
		var turns Turns
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
		var turns Turns
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
	var turns Turns
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

func TestWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns Turns
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
