package localpostgres_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/relayops/relayops/internal/localpostgres"
)

func TestDataSurvivesStopCrashAndANewOwner(t *testing.T) {
	dir := reachableDir(t)
	ctx := t.Context()
	server := start(t, localpostgres.Options{Dir: dir})
	run(t, server, "CREATE TABLE kept (n int)")
	for n, end := range []func() error{
		func() error { return server.Stop(ctx) },
		server.Kill,
	} {
		run(t, server, "INSERT INTO kept VALUES (1)")
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if err := server.Restart(ctx); err != nil {
			t.Fatal(err)
		}
		if got := count(t, server); got != n+1 {
			t.Errorf("after end %d: found %d rows, want %d", n, got, n+1)
		}
	}

	// A second start on the same directory takes the server of the first for an orphan, and ends it.
	second := start(t, localpostgres.Options{Dir: dir})
	select {
	case <-server.Exited():
	case <-time.After(10 * time.Second):
		t.Fatal("the orphan still runs")
	}
	if got := count(t, second); got != 2 {
		t.Errorf("found %d rows, want 2", got)
	}
}

func TestPasswordIsNeeded(t *testing.T) {
	server := start(t, localpostgres.Options{Dir: reachableDir(t)})
	user, _, _ := strings.Cut(server.URL(), ":"+password(t, server))
	_, host, _ := strings.Cut(server.URL(), "@")
	if conn, err := pgx.Connect(t.Context(), user+":wrong@"+host); err == nil {
		_ = conn.Close(t.Context())
		t.Error("a wrong password was accepted")
	}
}

func TestPortTakenIsNamed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	port := listener.Addr().(*net.TCPAddr).Port
	_, err = localpostgres.Start(t.Context(), localpostgres.Options{Dir: reachableDir(t), Port: port})
	if err == nil || !strings.Contains(err.Error(), strconv.Itoa(port)) {
		t.Errorf("found error %v, want one that names port %d", err, port)
	}
}

func TestDirectoryThatTheServersAccountCannotReach(t *testing.T) {
	if os.Geteuid() != 0 {
		return // Only root's server runs as somebody else.
	}
	dir := reachableDir(t)
	if err := os.Chmod(filepath.Dir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := localpostgres.Start(t.Context(), localpostgres.Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "cannot get to") {
		t.Errorf("found error %v, want one that says the directory cannot be reached", err)
	}
}

func TestMissingBinaries(t *testing.T) {
	t.Setenv("RELAYOPS_PG_BIN", t.TempDir())
	if _, err := localpostgres.FindBinaries(); !errors.Is(err, localpostgres.ErrNotInstalled) {
		t.Errorf("found error %v, want ErrNotInstalled", err)
	}
}

func TestServerDiesByItsOwnSignal(t *testing.T) {
	server := start(t, localpostgres.Options{Dir: reachableDir(t)})
	if err := syscall.Kill(server.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-server.Exited():
	case <-time.After(10 * time.Second):
		t.Fatal("Exited was not closed")
	}
}

func start(t *testing.T, options localpostgres.Options) *localpostgres.Server {
	t.Helper()
	options.Settings = map[string]string{"fsync": "off"}
	server, err := localpostgres.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Kill(); err != nil {
			t.Error(err)
		}
	})
	return server
}

func reachableDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "localpostgres-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "server")
}

func password(t *testing.T, server *localpostgres.Server) string {
	t.Helper()
	config, err := pgx.ParseConfig(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	return config.Password
}

func run(t *testing.T, server *localpostgres.Server, sql string) {
	t.Helper()
	conn := connect(t, server)
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, server *localpostgres.Server) (n int) {
	t.Helper()
	if err := connect(t, server).QueryRow(t.Context(), "SELECT count(*) FROM kept").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func connect(t *testing.T, server *localpostgres.Server) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}
