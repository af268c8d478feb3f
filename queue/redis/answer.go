package redis

import (
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/redislink"
	"github.com/weirhq/weir/queue"
)

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
