package queue

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/weirhq/weir"
)

// CheckWork checks the arguments of Push, for stores.
func (t *Terms) CheckWork(w Work) error {
	if len(w.Payload) > t.MaxPayload {
		return invalid("payload", "it has %d bytes, at most %d are accepted; store large data elsewhere and push a reference", len(w.Payload), t.MaxPayload)
	}
	if len(w.ID) > MaxIDLen {
		return invalid("id", "it has %d bytes, at most %d are accepted; use a hash of it", len(w.ID), MaxIDLen)
	}
	return nil
}

// CheckAsk checks the arguments of Lease and fills in the default, for stores.
func CheckAsk(a Ask) (Ask, error) {
	a.Max = cmp.Or(a.Max, 1)
	if a.Max < 0 || a.Max > MaxBatch {
		return a, invalid("max", "%d is out of range; ask for 1 to %d", a.Max, MaxBatch)
	}
	if a.Ahead < 0 || a.Ahead > MaxAhead {
		return a, invalid("ahead", "%v is out of range; write up to %v", a.Ahead, MaxAhead)
	}
	return a, nil
}

// CheckPage checks the arguments of DeadLetters, for stores.
func CheckPage(after int64, limit int) error {
	if after < 0 || after >= maxNumber {
		return invalid("after", "%d is not the number of an item; start with 0", after)
	}
	if limit < 1 || limit > MaxBatch {
		return invalid("limit", "%d is out of range; ask for 1 to %d", limit, MaxBatch)
	}
	return nil
}

// CheckNumbers checks the arguments of Requeue and Delete, for stores.
func CheckNumbers(numbers []int64) error {
	if len(numbers) > MaxBatch {
		return invalid("numbers", "%d are too many for one call; name up to %d", len(numbers), MaxBatch)
	}
	for _, n := range numbers {
		if n < 1 || n >= maxNumber {
			return invalid("numbers", "%d is not the number of an item", n)
		}
	}
	return nil
}

// maxNumber is where a Redis script can count no further.
const maxNumber = 1 << 53

// secretLen is the length of the random part of a token.
const secretLen = 32

// NewSecret returns a random secret for [Token], for stores.
func NewSecret() string {
	var b [secretLen / 2]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// Token returns the token of a lease, for stores. The secret is one of [NewSecret].
func Token(number int64, secret string) string {
	return strconv.FormatInt(number, 10) + "-" + secret
}

// ParseToken splits a token. If the token is malformed, the error is ErrLost, because
// it belongs to no lease.
func ParseToken(token string) (number int64, secret string, err error) {
	text, secret, found := strings.Cut(token, "-")
	if !found || len(text) > 16 || len(secret) != secretLen || strings.Trim(secret, alphanumeric) != "" {
		return 0, "", ErrLost
	}
	number, err = strconv.ParseInt(text, 10, 64)
	if err != nil || number < 1 || number >= maxNumber || text[0] == '+' {
		return 0, "", ErrLost
	}
	return number, secret, nil
}

const alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// Cut shortens a reason to MaxReasonLen and makes it printable, for stores.
func Cut(reason string) string {
	return strings.ToValidUTF8(reason[:min(len(reason), MaxReasonLen)], "?")
}

var (
	// ErrFull is returned by Push if the queue is full. The item was not accepted.
	ErrFull = errors.New("queue: the queue is full; try again later")

	// ErrNoQueue is returned for a queue that was not declared when the store was
	// created.
	ErrNoQueue = errors.New("queue: the queue does not exist; declare it when you create the store")

	// ErrLost is returned if the caller no longer has the lease: it has ended, or it
	// expired and another worker has the item.
	ErrLost = errors.New("queue: the lease is lost; leave the item to the worker that has it now")

	// ErrUnavailable is returned if the store is unavailable. The call may have taken
	// effect, unless the error says otherwise. Pushing again is safe if the item has an
	// ID.
	ErrUnavailable = errors.New("queue: the store is unavailable")

	// ErrClosed is returned by a store that was closed.
	ErrClosed = errors.New("queue: the store is closed")
)

// Bury marks a handler's error as permanent: the item becomes a dead letter
// immediately.
func Bury(err error) error {
	if err == nil {
		return nil
	}
	return &buried{err}
}

type buried struct{ error }

func (b *buried) Unwrap() error { return b.error }

func isBuried(err error) bool {
	var b *buried
	return errors.As(err, &b)
}

func invalid(field, format string, args ...any) error {
	return &weir.InvalidError{Field: field, Reason: fmt.Sprintf(format, args...)}
}
