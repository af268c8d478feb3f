package replay

import (
	"maps"

	"github.com/weirhq/weir"
)

// demand is what clients asked of one limit, whatever became of it: for each client
// when, and how often at that instant. So any other limit can be tried on it later.
//
// There is room for so many arrivals. When it is used up, the clients with the
// fewest are forgotten; see forget.
type demand struct {
	limit *weir.Compiled
	cost  int64 // of a request
	room  int

	clients map[string]*client
	used    int // arrivals of all clients

	requests int64 // all of them, also of those who were forgotten
	forgot   int64 // no client has more than so many forgotten requests at a time
	until    int64 // when there was no more room at all; 0 if there was
}

// client is who asked, and when, in the order of time.
type client struct {
	arrivals []arrival
	requests int64
}

type arrival struct {
	at int64
	n  int64 // requests at this instant
}

func newDemand(limit *weir.Compiled, cost int64, room int) *demand {
	return &demand{limit: limit, cost: cost, room: max(1, room), clients: make(map[string]*client)}
}

// add remembers a request. The client's bytes are the caller's. Time does not go
// back.
func (d *demand) add(key string, now int64) {
	if d.until != 0 {
		return
	}
	c := d.clients[key]
	if c == nil || c.arrivals[len(c.arrivals)-1].at != now {
		if d.used == d.room {
			if !d.forget() {
				d.until = now
				d.clients = maps.Collect(maps.All(d.clients)) // in no more room than they need
				return
			}
			c = d.clients[key]
		}
		if c == nil {
			c = &client{}
			d.clients[string([]byte(key))] = c
		}
		c.arrivals = append(c.arrivals, arrival{at: now})
		d.used++
	}
	d.requests++
	c.requests++
	c.arrivals[len(c.arrivals)-1].n++
}

// forget drops the clients with the fewest requests until a quarter of the room is
// free. A client with few requests is never denied, so this changes the result very
// little. It returns false when it would have to drop clients with an eighth of the
// busiest client's requests: then only the beginning of the log is used.
func (d *demand) forget() bool {
	most := int64(0)
	for _, c := range d.clients {
		most = max(most, c.requests)
	}
	for few := max(1, d.forgot); few <= most/8; few *= 2 {
		free := 0
		for _, c := range d.clients {
			if c.requests <= few {
				free += len(c.arrivals)
			}
		}
		if free < (d.room+3)/4 {
			continue
		}
		for key, c := range d.clients {
			if c.requests <= few {
				d.used -= len(c.arrivals)
				delete(d.clients, key)
			}
		}
		d.forgot = few
		return true
	}
	return false
}
