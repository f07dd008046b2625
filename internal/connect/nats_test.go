package connect

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/relayops/relayops/internal/runspec"
	"github.com/relayops/relayops/internal/testenv"
)

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestNATSWaitsForTheBroker(t *testing.T) {
	broker := testenv.NATS(t)
	broker.Stop()
	nc, err := NATS(runspec.NATS{URL: broker.URL()}, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("opening fails while the broker is away: %v", err)
	}
	defer nc.Close()
	if err := nc.Publish("a", nil); err == nil {
		t.Error("a publish is buffered while the broker is away")
	}
	for range 2 {
		broker.Start()
		eventually(t, "connected", nc.IsConnected)
		broker.Kill()
		eventually(t, "disconnected", func() bool { return !nc.IsConnected() })
	}
}

// A password that is refused does not end the connection's tries; the rotated file is read again.
func TestNATSFollowsRotatedCredentials(t *testing.T) {
	broker := testenv.NATS(t)
	plain := broker.Config()
	protect := func(password string) {
		broker.Stop()
		broker.Configure(plain + fmt.Sprintf("authorization { user: app, password: %q }\n", password))
		broker.Start()
	}
	protect("one")
	dir := t.TempDir()
	spec := runspec.NATS{
		URL: broker.URL(), UserFile: filepath.Join(dir, "user"), PasswordFile: filepath.Join(dir, "password"),
	}
	nc, err := NATS(spec, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("opening fails while the Secret is missing: %v", err)
	}
	defer nc.Close()
	eventually(t, "refused several times", func() bool { return nc.Stats().Reconnects >= 3 })
	if text := Explain(nc.LastError()).Error(); !strings.Contains(text, "refused the credentials") {
		t.Errorf("advice: %s", text)
	}
	write(t, spec.UserFile, "app\n")
	for _, password := range []string{"one", "two"} {
		protect(password)
		eventually(t, "refused", func() bool { return !nc.IsConnected() })
		write(t, spec.PasswordFile, password+"\n")
		eventually(t, "connected with password "+password, nc.IsConnected)
	}
}

func TestNATSMistakes(t *testing.T) {
	for name, test := range map[string]struct {
		spec runspec.NATS
		want string
	}{
		"half a credential": {runspec.NATS{URL: "nats://h", UserFile: "u"}, "userFile and passwordFile, allowed: both or none"},
		"two credentials":   {runspec.NATS{URL: "nats://h", CredsFile: "c", TokenFile: "t"}, "allowed: one of"},
		"no URL":            {runspec.NATS{URL: "nats://u:secret@[::"}, "nats url"},
	} {
		nc, err := NATS(test.spec, "test", slog.New(slog.DiscardHandler))
		if err == nil {
			nc.Close()
		}
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error holds the password: %v", name, err)
		}
	}
}

func TestNATSWithTLS(t *testing.T) {
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	cert, key := selfSigned(t, dir)
	broker := testenv.NATS(t, fmt.Sprintf("tls { cert_file: %q, key_file: %q }", cert, key))
	nc, err := NATS(runspec.NATS{URL: broker.URL(), CAFile: ca}, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("opening fails while the CA file is missing: %v", err)
	}
	defer nc.Close()
	if nc.IsConnected() {
		t.Fatal("connected without the CA")
	}
	pem, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	write(t, ca, string(pem))
	eventually(t, "connected", nc.IsConnected)
	if state, err := nc.TLSConnectionState(); err != nil || !state.HandshakeComplete {
		t.Errorf("TLS: %v", err)
	}
}

func TestReconnectDelay(t *testing.T) {
	for attempts, most := range map[int]time.Duration{0: reconnectFirst, 1: reconnectFirst, 4: 800 * time.Millisecond, 99: reconnectMost} {
		for range 100 {
			if got := reconnectDelay(attempts); got < most/2 || got > most {
				t.Fatalf("attempt %d: %s, want %s to %s", attempts, got, most/2, most)
			}
		}
	}
}

func TestExplainBroker(t *testing.T) {
	broker := testenv.NATS(t)
	broker.Stop()
	broker.Configure(strings.Split(broker.Config(), "\n")[0] + "\n") // The listen line alone: no JetStream.
	broker.Start()
	js, err := broker.Connect().JetStream()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.AccountInfo(); err == nil || !strings.Contains(Explain(err).Error(), "runs without JetStream") {
		t.Errorf("JetStream off: %v", Explain(err))
	}
	if err := Explain(nats.ErrNoServers); !strings.Contains(err.Error(), "nats-server -js") {
		t.Errorf("no servers: %v", err)
	}
}
