package connect

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"os"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/relayops/relayops/internal/runspec"
)

const (
	reconnectFirst = 100 * time.Millisecond
	reconnectMost  = 5 * time.Second
	pingInterval   = 15 * time.Second
)

// NATS opens a connection that is never given up: it retries the first connect and every later one for ever, also
// after refused credentials, which a rotated file may mend. The error is that of a specification that cannot be used.
//
// Nothing is buffered while the broker is away: a publish then fails at once, rather than go out much later.
// Options given here come last.
func NATS(spec runspec.NATS, name string, log *slog.Logger, options ...nats.Option) (*nats.Conn, error) {
	all := []nats.Option{
		nats.Name(name),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(),
		nats.CustomReconnectDelay(reconnectDelay),
		nats.ReconnectBufSize(-1),
		nats.Timeout(5 * time.Second),
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(2),
		nats.ConnectHandler(func(nc *nats.Conn) { log.Info("broker connected", "server", nc.ConnectedUrlRedacted()) }),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			log.Info("broker connected again", "server", nc.ConnectedUrlRedacted())
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("broker disconnected", "error", Explain(err))
			}
		}),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) {
			log.Debug("broker not reached", "error", Explain(err))
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			log.Warn("broker reported an error", "error", Explain(err))
		}),
	}
	credentials, err := natsCredentials(spec, log)
	if err != nil {
		return nil, err
	}
	all = append(all, credentials...)
	if secure := natsTLS(spec); secure != nil {
		all = append(all, secure)
	}
	nc, err := nats.Connect(spec.URL, append(all, options...)...)
	if err != nil {
		if parsing, isParsing := errors.AsType[*url.Error](err); isParsing {
			err = parsing.Err // The whole error quotes the URL, with its password.
		}
		return nil, fmt.Errorf("nats url %q: %w", redactURL(spec.URL), err)
	}
	return nc, nil
}

// reconnectDelay is exponential from 100 ms to 5 s with full jitter in its upper half, so that the clients of a broker
// that comes back do not arrive together.
func reconnectDelay(attempts int) time.Duration {
	delay := reconnectMost
	if attempts < 6 {
		delay = min(reconnectMost, reconnectFirst<<max(attempts-1, 0))
	}
	return delay/2 + rand.N(delay/2+1)
}

func natsCredentials(spec runspec.NATS, log *slog.Logger) ([]nats.Option, error) {
	userPassword := spec.UserFile != "" || spec.PasswordFile != ""
	if (spec.UserFile == "") != (spec.PasswordFile == "") {
		return nil, errors.New("nats: found one of userFile and passwordFile, allowed: both or none")
	}
	kinds := 0
	for _, set := range []bool{spec.CredsFile != "", userPassword, spec.TokenFile != ""} {
		if set {
			kinds++
		}
	}
	if kinds > 1 {
		return nil, errors.New("nats: found several credentials, allowed: one of credsFile, " +
			"userFile with passwordFile, and tokenFile")
	}
	// The handlers run for each connection. They cannot fail, so a missing file is logged and the server refuses.
	read := func(what, path string) string {
		text, err := readSecret(what, path)
		if err != nil {
			log.Warn("broker credentials not read", "error", err)
		}
		return text
	}
	switch {
	case spec.CredsFile != "":
		return []nats.Option{nats.UserCredentials(spec.CredsFile)}, nil
	case userPassword:
		return []nats.Option{nats.UserInfoHandler(func() (string, string) {
			return read("nats user", spec.UserFile), read("nats password", spec.PasswordFile)
		})}, nil
	case spec.TokenFile != "":
		return []nats.Option{nats.TokenHandler(func() string { return read("nats token", spec.TokenFile) })}, nil
	default:
		return nil, nil
	}
}

// natsTLS sets the callbacks itself: the library's own options read the files at once, and a Secret may come later.
func natsTLS(spec runspec.NATS) nats.Option {
	if spec.CAFile == "" && spec.CertFile == "" {
		return nil
	}
	return func(o *nats.Options) error {
		o.Secure = true
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		if spec.CAFile != "" {
			o.RootCAsCB = func() (*x509.CertPool, error) { return readRoots(spec.CAFile) }
		}
		if spec.CertFile != "" {
			o.TLSCertCB = func() (tls.Certificate, error) {
				pair, err := tls.LoadX509KeyPair(spec.CertFile, spec.KeyFile)
				if err != nil {
					return pair, fmt.Errorf("nats client certificate: %w", err)
				}
				return pair, nil
			}
		}
		return nil
	}
}

func readRoots(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("nats CA file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("nats CA file %s: found no certificate, allowed: PEM certificates", path)
	}
	return pool, nil
}
