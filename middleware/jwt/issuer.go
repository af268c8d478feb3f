package jwt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/weirhq/weir/internal/clientip"
	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/watch"
)

// How often keys are fetched, and how long they are good for.
const (
	every = 5 * time.Minute
	least = 10 * time.Second // between two times, whatever tokens come
	kept  = 24 * time.Hour   // when the issuer cannot be reached
)

// issuer is an issuer with its keys.
type issuer struct {
	Issuer
	algorithms []jose.SignatureAlgorithm
	file       string   // of its keys; "" if they are fetched
	at         *url.URL // where they are, if that is told; else it is discovered
	source     *source
	logger     *slog.Logger
	now        func() time.Time
	least      time.Duration

	set     atomic.Pointer[keySet]
	fetched atomic.Int64 // when, in Unix nanoseconds

	wake  chan struct{} // has an element when a key is asked for that is not known
	mu    sync.Mutex
	asked map[string]bool // ids of such keys since keys were last fetched at their time
	last  string          // what went wrong then
}

// maxAsked is how many ids of unknown keys are remembered.
const maxAsked = 1000

func newIssuer(told Issuer, v *Verifier, logger *slog.Logger) (*issuer, error) {
	i := &issuer{
		Issuer: told, source: newSource(), logger: logger, now: func() time.Time { return v.now() }, least: least,
		wake: make(chan struct{}, 1), asked: map[string]bool{},
	}
	i.Audience = slices.DeleteFunc(slices.Clone(told.Audience), func(s string) bool { return s == "" })
	if len(i.Audience) == 0 {
		return nil, errors.New("an audience is required, so that tokens for other services are not valid here; write the value that its tokens have in the claim aud")
	}
	if len(told.Algorithms) == 0 {
		told.Algorithms = usualAlgorithms
	}
	for _, name := range told.Algorithms {
		if !slices.Contains(supported, jose.SignatureAlgorithm(name)) {
			return nil, fmt.Errorf("the algorithm %q is not supported; use RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512 or EdDSA", name)
		}
		i.algorithms = append(i.algorithms, jose.SignatureAlgorithm(name))
	}
	return i, i.locate()
}

// locate finds out where the keys are.
func (i *issuer) locate() (err error) {
	switch {
	case i.URL == "":
		return errors.New("a URL is required; write the value that its tokens have in the claim iss")
	case i.JWKS == "":
		_, err = parseURL(i.URL)
		return err
	case strings.Contains(i.JWKS, "://"):
		i.at, err = parseURL(i.JWKS)
		return err
	}
	i.file = i.JWKS
	return i.readFile()
}

// parseURL reads a URL from which keys can be fetched: whoever could change them on their way could make
// tokens.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "":
		return nil, fmt.Errorf("%q is not a URL; write it as https://id.example.com", text)
	case u.Scheme == "https" || u.Scheme == "http" && clientip.IsLoopback(u.Hostname()):
		return u, nil
	}
	return nil, fmt.Errorf("%q must begin with https://; http:// is for this machine only", text)
}

func (i *issuer) readFile() error {
	text, err := readAll(i.file)
	if err != nil {
		return err
	}
	return i.install(text)
}

func readAll(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := bounded(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}

// install puts keys into force.
func (i *issuer) install(text []byte) error {
	set, err := parseKeys(text)
	if err != nil {
		return err
	}
	i.fetched.Store(i.now().UnixNano())
	if was := i.set.Load(); was == nil || was.sum != set.sum { // else the tokens that it verified stay so
		i.set.Store(set)
	}
	return nil
}

// keys are those in force; nil if none are known, or they are too old.
func (i *issuer) keys(now time.Time) *keySet {
	if i.file == "" && now.UnixNano()-i.fetched.Load() > int64(kept) {
		return nil
	}
	return i.set.Load()
}

// health is whether keys are known, and whether they could be read the last time.
func (i *issuer) health(now time.Time) (known, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.keys(now) != nil, i.last == ""
}

// ask has the keys fetched again, once for each id.
func (i *issuer) ask(id string) {
	if len(id) > MaxValue {
		return
	}
	i.mu.Lock()
	known := i.asked[id]
	if !known && len(i.asked) < maxAsked {
		i.asked[strings.Clone(id)] = true
	}
	i.mu.Unlock()
	if known {
		return
	}
	select {
	case i.wake <- struct{}{}:
	default:
	}
}

// follow keeps the keys up to date until the context ends.
func (i *issuer) follow(ctx context.Context) {
	if i.file != "" {
		_ = watch.Follow(ctx, i.file, watch.Options{}, func() {
			if watch.Pause(ctx) == nil { // somebody may be writing it
				i.tell(i.readFile())
			}
		})
		return
	}
	for ctx.Err() == nil {
		wait := every
		if i.now().UnixNano()-i.fetched.Load() >= int64(i.least) && i.refresh(ctx) != nil { // Load may just have done it
			wait = i.least
		}
		if clock.Sleep(ctx, i.least) != nil {
			return
		}
		again := time.NewTimer(wait - i.least)
		select {
		case <-ctx.Done():
		case <-i.wake:
		case <-again.C:
			i.mu.Lock()
			clear(i.asked)
			i.mu.Unlock()
		}
		again.Stop()
	}
}

// refresh fetches the keys once.
func (i *issuer) refresh(ctx context.Context) error {
	text, err := i.source.fetch(ctx, i)
	if err == nil {
		err = i.install(text)
	}
	if err != nil {
		err = fmt.Errorf("jwt: the keys of the issuer %q: %w", i.URL, err)
	}
	if ctx.Err() == nil {
		i.tell(err)
	}
	return err
}

// tell logs what has changed.
func (i *issuer) tell(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := ""
	if err != nil {
		now = err.Error()
	}
	switch was := i.last; {
	case now == was:
	case now == "":
		i.logger.Info("the keys of the issuer can be read again", "issuer", i.URL)
	default:
		i.logger.Warn("could not read the keys of the issuer; those that were read stay valid for 24 h", "issuer", i.URL, "error", err)
	}
	i.last = now
}
