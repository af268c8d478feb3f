// Package certs keeps the certificate of a server, and follows its files when they are
// renewed: no connection is lost, and a bad pair never replaces a good one.
package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options of Open.
type Options struct {
	// CertFile has the certificate, and after it those between it and its authority,
	// in PEM. It is needed.
	CertFile string

	// KeyFile has the private key that belongs to it, in PEM. It is needed.
	KeyFile string

	// ClientCAFile has the authorities, in PEM, one of which must vouch for every
	// client. Default none: clients need no certificate.
	ClientCAFile string
}

// Certs is a certificate that may be renewed. It is safe for concurrent use.
type Certs struct {
	options Options
	current atomic.Pointer[state]

	mu sync.Mutex // held while files are read, so that the last to look wins
}

// state is what the files said at one time.
type state struct {
	cert, key, clientCA []byte // as they were read, to tell whether they have changed
	pair                *tls.Certificate
	config              *tls.Config
}

// Open reads the files.
func Open(o Options) (*Certs, error) {
	if o.CertFile == "" || o.KeyFile == "" {
		return nil, errors.New("certs: a certificate and its key belong together; name the file of each")
	}
	c := &Certs{options: o}
	s, err := c.read()
	if err != nil {
		return nil, err
	}
	c.current.Store(s)
	return c, nil
}

// TLS returns the configuration of a server, which always has the latest certificate:
// TLS 1.2 or later, and HTTP/2 if the client knows it.
func (c *Certs) TLS() *tls.Config {
	config := c.configuration()
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current.Load().pair, nil }
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.current.Load().config, nil }
	return config
}

// configuration is what does not change with the files.
func (c *Certs) configuration() *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	if c.options.ClientCAFile != "" {
		config.ClientAuth = tls.RequireAndVerifyClientCert
		// A ticket would let a client in again without anybody looking at its
		// certificate, even after its authority was taken off the list.
		config.SessionTicketsDisabled = true
	}
	return config
}

// Reload looks at the files again. What they say holds for connections that come from
// now on. On an error the old certificate stays; an error is no surprise while somebody
// is just replacing the files one after the other.
func (c *Certs) Reload() (changed bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.read()
	if err != nil {
		return false, err
	}
	if old := c.current.Load(); bytes.Equal(s.cert, old.cert) && bytes.Equal(s.key, old.key) && bytes.Equal(s.clientCA, old.clientCA) {
		return false, nil
	}
	c.current.Store(s)
	return true, nil
}

// Expires is when the certificate is no longer good.
func (c *Certs) Expires() time.Time { return c.current.Load().pair.Leaf.NotAfter }

func (c *Certs) read() (*state, error) {
	o, s := c.options, &state{config: c.configuration()}
	var err error
	if s.cert, err = readFile(o.CertFile); err != nil {
		return nil, err
	}
	if s.key, err = readFile(o.KeyFile); err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(s.cert, s.key)
	if err != nil {
		return nil, fmt.Errorf("certs: %s and %s cannot be used together: %s; they must be PEM files of one certificate and its key",
			o.CertFile, o.KeyFile, strings.TrimPrefix(err.Error(), "tls: "))
	}
	s.pair = &pair
	s.config.Certificates = []tls.Certificate{pair}
	if o.ClientCAFile == "" {
		return s, nil
	}
	if s.clientCA, err = readFile(o.ClientCAFile); err != nil {
		return nil, err
	}
	s.config.ClientCAs = x509.NewCertPool()
	if !s.config.ClientCAs.AppendCertsFromPEM(s.clientCA) {
		return nil, fmt.Errorf("certs: %s has no certificate; write the authorities of the clients into it, in PEM", o.ClientCAFile)
	}
	return s, nil
}

const maxFile = 1 << 20 // bytes; a bundle of all public authorities is a quarter of it

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("certs: %w", err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("certs: %w", err)
	}
	if len(content) > maxFile {
		return nil, fmt.Errorf("certs: %s is larger than 1 MiB, which no certificate is", name)
	}
	return content, nil
}
