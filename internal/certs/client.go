package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/weirhq/weir/internal/disk"
)

// Client says how to connect to a server with TLS 1.2 or later. The zero value trusts the
// authorities of the system.
type Client struct {
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
func (c Client) IsZero() bool { return c == Client{} }

// TLS reads the files.
func (c Client) TLS() (*tls.Config, error) {
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
