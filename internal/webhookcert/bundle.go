package webhookcert

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"time"
)

const (
	// authorityLife and certificateLife are how long each is good for.
	authorityLife, certificateLife = 5 * 365 * 24 * time.Hour, 90 * 24 * time.Hour
	// authorityLeft and certificateLeft are what is left of it when a new one is made.
	authorityLeft, certificateLeft = 365 * 24 * time.Hour, 30 * 24 * time.Hour
	// backdated is how far clocks may differ.
	backdated = 10 * time.Minute
)

// Keys of the Secret.
const (
	keyAuthority         = "ca.crt"
	keyAuthorityKey      = "ca.key"
	keyFormerAuthorities = "ca-former.crt"
	keyCertificate       = "tls.crt"
	keyCertificateKey    = "tls.key"
)

var errUnusable = errors.New("no usable certificate")

// bundle is the Secret's content, in PEM.
type bundle map[string][]byte

// authorities are what the API server has to trust: the present one and the former, of which certificates may still be
// served.
func (b bundle) authorities() []byte {
	return append(bytes.Clone(b[keyAuthority]), b[keyFormerAuthorities]...)
}

// pair is what is served.
func (b bundle) pair() (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(b[keyCertificate], b[keyCertificateKey])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnusable, err)
	}
	return &pair, nil
}

// renewed gives what the Secret has to hold now: what it holds, or a new certificate, or a new authority too. changed
// says whether that is something else.
func (b bundle) renewed(names []string, now time.Time, random io.Reader) (after bundle, changed bool, err error) {
	authority, key, err := b.authority()
	if err != nil || now.After(authority.NotAfter.Add(-authorityLeft)) {
		return b.withAuthority(names, now, random)
	}
	if b.good(authority, names, now) {
		return b, false, nil
	}
	after, err = b.withCertificate(authority, key, names, now, random)
	return after, true, err
}

// good: the certificate is the authority's, for these names, and not soon over.
func (b bundle) good(authority *x509.Certificate, names []string, now time.Time) bool {
	pair, err := b.pair()
	if err != nil || pair.Leaf == nil || now.After(pair.Leaf.NotAfter.Add(-certificateLeft)) ||
		pair.Leaf.CheckSignatureFrom(authority) != nil {
		return false
	}
	for _, name := range names {
		if pair.Leaf.VerifyHostname(name) != nil {
			return false
		}
	}
	return true
}

func (b bundle) authority() (*x509.Certificate, *ecdsa.PrivateKey, error) {
	certificate, err := parse(b[keyAuthority])
	if err != nil {
		return nil, nil, err
	}
	block, _ := pem.Decode(b[keyAuthorityKey])
	if block == nil {
		return nil, nil, fmt.Errorf("%w: the authority has no key", errUnusable)
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errUnusable, err)
	}
	if !key.PublicKey.Equal(certificate.PublicKey) {
		return nil, nil, fmt.Errorf("%w: the authority's key is another one's", errUnusable)
	}
	return certificate, key, nil
}

func parse(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%w: no certificate in PEM", errUnusable)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnusable, err)
	}
	return certificate, nil
}

func (b bundle) withAuthority(names []string, now time.Time, random io.Reader) (bundle, bool, error) {
	key, keyText, err := newKey(random)
	if err != nil {
		return nil, false, err
	}
	template, err := template("relayops webhook authority", now, authorityLife, random)
	if err != nil {
		return nil, false, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(random, template, template, key.Public(), key)
	if err != nil {
		return nil, false, fmt.Errorf("make the authority: %w", err)
	}
	authority, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, false, fmt.Errorf("read the new authority: %w", err)
	}
	after := bundle{keyAuthority: encode("CERTIFICATE", der), keyAuthorityKey: keyText}
	if former, err := parse(b[keyAuthority]); err == nil && now.Before(former.NotAfter) {
		after[keyFormerAuthorities] = b[keyAuthority]
	}
	after, err = after.withCertificate(authority, key, names, now, random)
	return after, true, err
}

func (b bundle) withCertificate(authority *x509.Certificate, authorityKey *ecdsa.PrivateKey, names []string,
	now time.Time, random io.Reader,
) (bundle, error) {
	key, keyText, err := newKey(random)
	if err != nil {
		return nil, err
	}
	template, err := template(names[0], now, certificateLife, random)
	if err != nil {
		return nil, err
	}
	template.DNSNames = names
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	der, err := x509.CreateCertificate(random, template, authority, key.Public(), authorityKey)
	if err != nil {
		return nil, fmt.Errorf("make the certificate: %w", err)
	}
	after := make(bundle, len(b)+2)
	maps.Copy(after, b)
	after[keyCertificate], after[keyCertificateKey] = encode("CERTIFICATE", der), keyText
	return after, nil
}

func template(name string, now time.Time, life time.Duration, random io.Reader) (*x509.Certificate, error) {
	serial := make([]byte, 16)
	if _, err := io.ReadFull(random, serial); err != nil {
		return nil, fmt.Errorf("draw a serial number: %w", err)
	}
	serial[0] &= 0x7f
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(serial),
		// A common name has 64 characters at most; nobody verifies it.
		Subject:   pkix.Name{CommonName: name[:min(len(name), 64)]},
		NotBefore: now.Add(-backdated), NotAfter: now.Add(life),
	}, nil
}

func newKey(random io.Reader) (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return nil, nil, fmt.Errorf("draw a key: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("write a key: %w", err)
	}
	return key, encode("EC PRIVATE KEY", der), nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
