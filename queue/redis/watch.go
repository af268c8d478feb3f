package redis

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/queue"
)

// Watch implements queue.Store. It also wakes when it begins to listen: what was said
// before was not heard.
func (s *Store) Watch(ctx context.Context, name string, wake func()) error {
	k := s.queues[name]
	if k == nil {
		return queue.ErrNoQueue
	}
	subscribed := rueidis.WithOnSubscriptionHook(ctx, func(rueidis.PubSubSubscription) { wake() })
	for ctx.Err() == nil {
		if client, err := s.client(); err == nil {
			// Whatever ends it, whoever asks finds out whether there is trouble.
			_ = client.Receive(subscribed, client.B().Subscribe().Channel(k.channel).Build(), func(rueidis.PubSubMessage) { wake() })
		}
		select {
		case <-ctx.Done():
		case <-time.After(s.poll - s.poll/5 + rand.N(2*s.poll/5)):
		}
	}
	return ctx.Err()
}
