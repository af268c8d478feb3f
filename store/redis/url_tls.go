package redis

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/weirhq/weir/internal/disk"
)

// tlsConfig is what the tls_ options say. The server's name is left open without
// tls_server_name, so that each node of a cluster must prove its own.
func (o urlOptions) tlsConfig() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: o.values["tls_server_name"]}
	if value, ok := o.values["tls_insecure"]; ok {
		if value != "true" {
			return nil, errors.New("redis: the URL's option tls_insecure is not true; write tls_insecure=true or leave it out")
		}
		if o.values["tls_ca"] != "" {
			return nil, errors.New("redis: the URL has both tls_ca and tls_insecure, which ignores tls_ca; remove one")
		}
		c.InsecureSkipVerify = true
	}
	if o.values["tls_ca"] != "" {
		pem, err := o.file("tls_ca")
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("redis: the file of the URL's option tls_ca has no certificate; it must begin with -----BEGIN CERTIFICATE-----")
		}
	}
	if (o.values["tls_cert"] == "") != (o.values["tls_key"] == "") {
		return nil, errors.New("redis: the URL has only one of tls_cert and tls_key; add the other")
	}
	if o.values["tls_cert"] != "" {
		pair, err := o.keyPair()
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

func (o urlOptions) keyPair() (tls.Certificate, error) {
	cert, err := o.file("tls_cert")
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := o.file("tls_key")
	if err != nil {
		return tls.Certificate{}, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		// Package tls says what is wrong, and quotes neither file.
		return tls.Certificate{}, fmt.Errorf("redis: the files of the URL's options tls_cert and tls_key are not a PEM certificate and its key: %w", err)
	}
	return pair, nil
}

// file reads the file that an option names. Its errors name the option and not the
// file: somebody will write password_file=PASSWORD.
func (o urlOptions) file(option string) ([]byte, error) {
	const most = 1 << 20 // many times the size of a system's list of CAs
	f, err := disk.Open(o.values[option])
	if err != nil {
		return nil, unreadable(option, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, unreadable(option, err)
	}
	if len(text) > most {
		return nil, fmt.Errorf("redis: the file of the URL's option %s is larger than 1 MiB; name another", option)
	}
	return text, nil
}

func unreadable(option string, err error) error {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("redis: the file of the URL's option %s cannot be read (%w); write its whole path", option, err)
}
