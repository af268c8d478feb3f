package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/weirhq/weir/rule"
)

// Record is a client as a store keeps it.
type Record struct {
	Name string
	Text []byte // as Entry.text writes it; empty if the client was deleted
}

// Position is the last change that is known of a directory. The token of a change is random: a number alone would not tell it from
// the one that has its number in another history, such as that of a Redis that has lost the last changes in a failover. The zero Position is a store in which nothing was ever written.
type Position struct {
	Token  string
	Number uint64
}

// Store keeps the truth. Its methods are called one at a time, except Watch.
type Store interface {
	// Load calls each with all records, and then with those that changed meanwhile, so that the last of a name counts. If
	// that cannot be followed, the error is ErrMoved. It also returns how many clients there are then; 0 if the store does not know.
	Load(ctx context.Context, each func(Record)) (Position, int, error)

	// Changes returns what has changed since a position, in order, perhaps not all of it, and up to where. If the store does
	// not know that any more, the error is ErrMoved.
	Changes(ctx context.Context, since Position) ([]Record, Position, error)

	// Write makes changes, all or none. If the store is not at the position base, the error is ErrMoved. After any
	// other error, the changes may have been made. All yields what there is then, for stores that write it again.
	Write(ctx context.Context, base Position, records []Record, all func(func(Record) bool)) (Position, error)

	// Watch calls look at once, soon after every change of others, and from time to time, until the context ends.
	Watch(ctx context.Context, look func()) error
}

// ErrMoved is returned if others have changed the store.
var ErrMoved = errors.New("the directory of clients has changed meanwhile")

// ErrLost is returned if a store has less than was written to it.
var ErrLost = errors.New("redis has lost clients; those that are known stay in force, but cannot be changed. Restore the data of redis. " +
	"Or save them with weir clients export, delete the keys weir:{clients}:* that are left, restart one instance, and import them there")

// stored is the text of a record.
type stored struct {
	Serial string          `json:"serial"`
	By     string          `json:"by,omitempty"`
	At     int64           `json:"at"` // milliseconds
	Client json.RawMessage `json:"client"`
}

// recordOf is a client as a store keeps it.
func recordOf(c rule.Client) Record {
	name := c.Name
	c.Name = ""                                                                                                    // which the record has
	text, _ := json.Marshal(stored{versionOf(c.Stamp), c.Stamp.By, c.Stamp.At.UnixMilli(), rule.ClientToJSON(&c)}) // it has nothing that could fail
	return Record{name, text}
}

// client reads a record.
func (r Record) client() (rule.Client, error) {
	var s stored
	if err := json.Unmarshal(r.Text, &s); err != nil {
		return rule.Client{}, fmt.Errorf("the entry of %.80q cannot be read: %w", r.Name, err)
	}
	serial, err := strconv.ParseUint(s.Serial, 16, 64)
	if err != nil {
		return rule.Client{}, fmt.Errorf("the entry of %.80q has no serial", r.Name)
	}
	name, _ := json.Marshal(r.Name)
	text := append([]byte(`{"client":`), name...)
	if rest, ok := bytes.CutPrefix(bytes.TrimSpace(s.Client), []byte("{")); ok {
		if !bytes.HasPrefix(rest, []byte("}")) {
			text = append(text, ',')
		}
		text = append(text, rest...)
	}
	c, problems := rule.ReadClient("", text)
	if len(problems) > 0 {
		return rule.Client{}, fmt.Errorf("the entry of %.80q has an error: %s", r.Name, problems[0].Message)
	}
	c.Stamp = rule.Stamp{Serial: serial, By: s.By, At: time.UnixMilli(s.At).UTC()}
	return c, nil
}

// versionOf is a stamp as an ETag.
func versionOf(s rule.Stamp) string {
	if s == (rule.Stamp{}) {
		return ""
	}
	return strconv.FormatUint(s.Serial, 16)
}

func entryOf(c rule.Client) Entry { return Entry{c, versionOf(c.Stamp), c.Stamp.By, c.Stamp.At} }
