package connect

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/nats-io/nats.go/jetstream"
)

func TestExplain(t *testing.T) {
	for want, err := range map[string]error{
		"correct it in the database URL": &pgconn.PgError{Code: "28P01"},
		"raise max_connections":          &pgconn.PgError{Code: "53300"},
		"starting up":                    &pgconn.PgError{Code: "57P03"},
		"the port is taken":              &net.OpError{Err: syscall.EADDRINUSE},
		"nothing listens there":          &net.OpError{Err: syscall.ECONNREFUSED},
		`host name "db.example"`:         &net.DNSError{Name: "db.example"},
		"raise max_file_store":           &jetstream.APIError{ErrorCode: 10047},
		"set replicas to 1":              &jetstream.APIError{ErrorCode: 10074},
		"NATS server's disk is full":     &jetstream.APIError{ErrorCode: 10077, Description: "no space left on device"},
		"the stream is full":             &jetstream.APIError{ErrorCode: 10077, Description: "maximum bytes exceeded"},
		"enable it for the account":      jetstream.ErrJetStreamNotEnabledForAccount,
		"start it with -js":              jetstream.ErrJetStreamNotEnabled,
		"the disk is full: make room":    syscall.ENOSPC,
	} {
		wrapped := fmt.Errorf("start: %w", err)
		explained := Explain(wrapped)
		if !strings.Contains(explained.Error(), want) {
			t.Errorf("Explain(%v) = %v, want advice with %q", err, explained, want)
		}
		if !errors.Is(explained, err) {
			t.Errorf("%v does not wrap its cause", explained)
		}
		if twice := Explain(explained); twice.Error() != explained.Error() {
			t.Errorf("advice is given twice: %v", twice)
		}
	}
	other := errors.New("something else")
	if Explain(nil) != nil || !errors.Is(Explain(other), other) || Explain(other).Error() != other.Error() {
		t.Error("nil or an unknown error is changed")
	}
}

// selfSigned writes a certificate for 127.0.0.1 and its key.
func selfSigned(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	write(t, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})))
	return cert, key
}
