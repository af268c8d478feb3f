package trust

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weirhq/weir/internal/disk"
)

// Options of OpenCerts.
type Options struct {
	// CertFile has the certificate, and after it those between it and its authority,
	// in PEM. It is needed.
	CertFile string

	// KeyFile has the private key that belongs to it, in PEM. It is needed.
	KeyFile string

	// ClientCAFile has the authorities, in PEM, one of which must vouch for every
	// client. Default none: clients need no certificate.
	ClientCAFile string

	// ClientSANs are subject alternative names, one of which every client's certificate
	// must have: a DNS name or an IP address, which a wildcard of the certificate may
	// cover, or a URI or an e-mail address, to the letter. Default none: the authority
	// is enough.
	ClientSANs []string
}

// IsZero reports whether nothing is set.
func (o *Options) IsZero() bool {
	return o.CertFile == "" && o.KeyFile == "" && o.ClientCAFile == "" && len(o.ClientSANs) == 0
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

// OpenCerts reads the files.
func OpenCerts(o Options) (*Certs, error) {
	if o.CertFile == "" || o.KeyFile == "" {
		return nil, errors.New("certs: a certificate and its key are both required; set both files")
	}
	if len(o.ClientSANs) > 0 && o.ClientCAFile == "" {
		return nil, errors.New("certs: client names require a CA that verifies the clients; set the client CA file, too")
	}
	c := &Certs{options: o}
	s, err := c.readFiles(nil)
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
	if len(c.options.ClientSANs) > 0 {
		config.VerifyConnection = func(state tls.ConnectionState) error { return hasName(state.PeerCertificates[0], c.options.ClientSANs) }
	}
	return config
}

// hasName is an error if a certificate has none of the names.
func hasName(cert *x509.Certificate, names []string) error {
	for _, name := range names {
		if cert.VerifyHostname(name) == nil || slices.Contains(cert.EmailAddresses, name) ||
			slices.ContainsFunc(cert.URIs, func(u *url.URL) bool { return u.String() == name }) {
			return nil
		}
	}
	return errors.New("certs: the client certificate has none of the required names")
}

// Reload looks at the files again. What they say holds for connections that come from
// now on. On an error the old certificate stays; an error is no surprise while somebody
// is just replacing the files one after the other.
func (c *Certs) Reload() (changed bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.readFiles(c.current.Load())
	if err != nil || s == nil {
		return false, err
	}
	c.current.Store(s)
	return true, nil
}

// readFiles makes a state of the files. It is nil if they say what they said before.
func (c *Certs) readFiles(before *state) (*state, error) {
	o, s := c.options, &state{config: c.configuration()}
	for _, f := range []struct {
		name    string
		content *[]byte
	}{{o.CertFile, &s.cert}, {o.KeyFile, &s.key}, {o.ClientCAFile, &s.clientCA}} {
		if f.name == "" {
			continue
		}
		var err error
		if *f.content, err = disk.ReadFile(f.name, maxFile, "certificate"); err != nil {
			return nil, fmt.Errorf("certs: %w", err)
		}
	}
	if before != nil && bytes.Equal(s.cert, before.cert) && bytes.Equal(s.key, before.key) && bytes.Equal(s.clientCA, before.clientCA) {
		return nil, nil
	}
	pair, err := keyPair(o.CertFile, s.cert, o.KeyFile, s.key)
	if err != nil {
		return nil, err
	}
	s.pair = &pair
	s.config.Certificates = []tls.Certificate{pair}
	if o.ClientCAFile == "" {
		return s, nil
	}
	s.config.ClientCAs = x509.NewCertPool()
	if !s.config.ClientCAs.AppendCertsFromPEM(s.clientCA) {
		return nil, fmt.Errorf("certs: %s has no certificate; it must be a PEM file with the CAs of the clients", o.ClientCAFile)
	}
	return s, nil
}

const maxFile = 1 << 20 // bytes; a bundle of all public authorities is a quarter of it

// ClientCert says how to connect to a server with TLS 1.2 or later. The zero value trusts the
// authorities of the system.
type ClientCert struct {
	// CAFile has the authorities, in PEM, one of which must vouch for the server. Default
	// those of the system.
	CAFile string

	// CertFile and KeyFile have the certificate to show and its private key, in PEM.
	// Default none is shown.
	CertFile, KeyFile string

	// ServerName is the name that the certificate of the server must have. Default the
	// host that is connected to.
	ServerName string
}

// IsZero reports whether nothing is set.
func (c ClientCert) IsZero() bool { return c == ClientCert{} }

// TLS reads the files.
func (c ClientCert) TLS() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName}
	if c.CAFile != "" {
		authorities, err := disk.ReadFile(c.CAFile, maxFile, "CA file")
		if err != nil {
			return nil, fmt.Errorf("certs: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(authorities) {
			return nil, fmt.Errorf("certs: %s has no certificate; it must be a PEM file with the CAs of the server", c.CAFile)
		}
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		return nil, errors.New("certs: a certificate and its key are both required; set both files, or none")
	}
	if c.CertFile == "" {
		return config, nil
	}
	var content [2][]byte
	for i, name := range []string{c.CertFile, c.KeyFile} {
		var err error
		if content[i], err = disk.ReadFile(name, maxFile, "certificate"); err != nil {
			return nil, fmt.Errorf("certs: %w", err)
		}
	}
	pair, err := keyPair(c.CertFile, content[0], c.KeyFile, content[1])
	if err != nil {
		return nil, err
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// keyPair is a certificate and its key, of files with these names.
func keyPair(certFile string, cert []byte, keyFile string, key []byte) (tls.Certificate, error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return pair, fmt.Errorf("certs: %s and %s cannot be used together: %s; they must be PEM files of one certificate and its key",
			certFile, keyFile, strings.TrimPrefix(err.Error(), "tls: "))
	}
	return pair, nil
}
