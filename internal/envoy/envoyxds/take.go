package envoyxds

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/disk"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/envoy/envoyconfig"
	"github.com/weirhq/weir/rule"
)

// digest tells the contents of responses apart.
type digest [sha256.Size]byte

// digest is the same for the same resources in any order: control planes keep them in maps.
func (r *response) digest() digest {
	slices.SortFunc(r.resources, func(a, b resource) int {
		return cmp.Or(bytes.Compare(a.value, b.value), cmp.Compare(a.typeURL, b.typeURL))
	})
	h := sha256.New()
	fmt.Fprintf(h, "%d %d\n", len(r.version), r.beyond)
	for _, one := range r.resources {
		fmt.Fprintf(h, "%q %d\n", one.typeURL, len(one.value))
		h.Write(one.value)
	}
	return digest(h.Sum(nil))
}

// read makes a configuration of all resources. What is out of bounds is not decoded.
func (r *response) read(o envoyconfig.Options) (*envoyconfig.Config, rule.Problems, error) {
	if err := r.check(); err != nil {
		return nil, nil, err
	}
	files := make([]envoyconfig.File, len(r.resources))
	for i := range r.resources {
		var err error
		if files[i], err = r.resources[i].file(); err != nil {
			return nil, nil, fmt.Errorf("envoyxds: resources[%d] cannot be decoded: %w", i, err)
		}
	}
	config, problems := envoyconfig.Read(files, o)
	return config, problems, envoyconfig.Invalid(problems)
}

// Snapshot writes the configuration in force, for Restore; nothing if there is none.
func (c *Client) Snapshot(w io.Writer) error {
	c.mu.Lock()
	last := c.last
	c.mu.Unlock()
	_, err := w.Write(last)
	return err
}

// Restore brings into force what Snapshot wrote, until the control plane sends something
// newer. It is called before Run.
func (c *Client) Restore(file io.Reader) error {
	data, err := disk.ReadAll(file, "the file", MaxBytes, "response of an xDS server")
	if err != nil || len(data) == 0 {
		return err
	}
	r, err := parse(data)
	if err != nil {
		return err
	}
	config, _, err := r.read(c.options.Read)
	if err == nil {
		c.install(config, r.digest(), data)
	}
	return err
}

func (c *Client) install(config *envoyconfig.Config, sum digest, data []byte) {
	if c.options.Read.Install != nil {
		c.options.Read.Install(config)
	}
	c.config.Store(config)
	c.inForce = sum
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = data
}

// take brings a response into force, or says why not, and whether it was said before.
func (c *Client) take(r *response, data []byte) (repeated bool, err error) {
	sum := r.digest()
	if c.why != nil && sum == c.rejected {
		c.count(r.version, false)
		return true, c.why
	}
	update := Update{Version: document.Clip(r.version, maxVersion), Config: c.config.Load()}
	news := c.why != nil // that is over
	if update.Config == nil || sum != c.inForce {
		news = true
		var config *envoyconfig.Config
		if config, update.Warnings, err = r.read(c.options.Read); err == nil {
			c.install(config, sum, data)
			update.Config = config
		}
	}
	c.rejected, c.why, update.Err = sum, err, err
	c.count(r.version, err == nil)
	if news {
		c.options.Changed(update)
	}
	return false, err
}

func (c *Client) count(version string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !ok {
		c.state.Rejected++
		return
	}
	c.state.Accepted++
	c.state.Version = version
}

// maxDetail is how many problems a rejection names, and how many bytes it has.
const (
	maxProblems = 10
	maxDetail   = 4 << 10
)

// detail is what the control plane is told.
func detail(err error) string {
	text := err.Error()
	if invalid, ok := errors.AsType[*envoyconfig.InvalidError](err); ok {
		var lines []string
		for _, p := range invalid.Problems[:min(maxProblems, len(invalid.Problems))] {
			lines = append(lines, p.String())
		}
		if more := len(invalid.Problems) - maxProblems; more > 0 {
			lines = append(lines, fmt.Sprintf("and %d more errors", more))
		}
		text = strings.Join(lines, "\n")
	}
	return document.Clip(text, maxDetail)
}
