package localnats_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/relayops/relayops/internal/localnats"
)

// TestMain lets the test binary play a process that serves a directory and is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("LOCALNATS_SERVE"); dir != "" {
		served, err := localnats.Start(context.Background(), localnats.Options{Dir: dir})
		if err != nil {
			_, _ = os.Stdout.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		_, _ = os.Stdout.WriteString(served.URL() + "\n")
		select {}
	}
	goleak.VerifyTestMain(m)
}

func TestMessagesSurviveAStop(t *testing.T) {
	dir := t.TempDir()
	first := start(t, localnats.Options{Dir: dir})
	publish(t, first.URL(), "one")
	port := first.Port()
	stop(t, first)

	second := start(t, localnats.Options{Dir: dir, Port: port})
	defer stop(t, second)
	if second.Port() != port {
		t.Errorf("Port = %d, want %d, the one asked for", second.Port(), port)
	}
	if got := messages(t, second.URL()); got != 1 {
		t.Errorf("messages after a restart = %d, want 1", got)
	}
}

func TestAcknowledgedMessagesSurviveASIGKILL(t *testing.T) {
	dir := t.TempDir()
	process, url := serve(t, dir)
	for range 20 {
		publish(t, url, "acknowledged")
	}
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = process.Wait()

	again := start(t, localnats.Options{Dir: dir})
	defer stop(t, again)
	if got := messages(t, again.URL()); got != 20 {
		t.Errorf("messages after a SIGKILL = %d, want 20", got)
	}
}

func TestADirectoryInUseIsRefusedWithTheHoldersPID(t *testing.T) {
	dir := t.TempDir()
	process, _ := serve(t, dir)
	defer func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	}()
	var inUse *localnats.InUseError
	_, err := localnats.Start(t.Context(), localnats.Options{Dir: dir})
	if !errors.As(err, &inUse) || inUse.PID != process.Process.Pid {
		t.Fatalf("Start on a served directory = %v, want an InUseError with pid %d", err, process.Process.Pid)
	}
}

func TestATakenPortIsNamed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	port := listener.Addr().(*net.TCPAddr).Port

	dir := t.TempDir()
	var taken *localnats.PortTakenError
	if _, err := localnats.Start(t.Context(), localnats.Options{Dir: dir, Port: port}); !errors.As(err, &taken) {
		t.Fatalf("Start on a taken port = %v, want a PortTakenError", err)
	}
	if taken.Port != port {
		t.Errorf("PortTakenError.Port = %d, want %d", taken.Port, port)
	}
	// The failed start left the directory free.
	stop(t, start(t, localnats.Options{Dir: dir}))
}

func TestAStreamMayReserveMoreThanTheDiskHolds(t *testing.T) {
	server := start(t, localnats.Options{Dir: t.TempDir()})
	defer stop(t, server)
	js := connect(t, server.URL())
	_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: "LARGE", Subjects: []string{"large"}, MaxBytes: 1 << 44,
	})
	if err != nil {
		t.Errorf("a stream of 16 TiB was refused: %v", err)
	}
}

func TestAFullDiskIsReportedAndARestartMendsIt(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=96m"); err != nil {
		// Only root may mount. The message of a full disk is also checked without one, below.
		checkDiskFullMessage(t, &localnats.DiskFullError{Dir: dir, FreeBytes: 1 << 20})
		return
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	server := start(t, localnats.Options{Dir: filepath.Join(dir, "nats")})
	defer stop(t, server)
	publish(t, server.URL(), "before")

	fill(t, filepath.Join(dir, "ballast"))
	js := connect(t, server.URL())
	for range 30 {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, _ = js.Publish(ctx, "events.a.b", make([]byte, 64<<10))
		cancel()
		if server.Check() != nil {
			break
		}
	}
	var full *localnats.DiskFullError
	if err := server.Check(); !errors.As(err, &full) {
		t.Fatalf("Check with a full disk = %v, want a DiskFullError", err)
	}
	checkDiskFullMessage(t, full)
	if err := server.Restart(t.Context()); !errors.As(err, &full) {
		t.Fatalf("Restart with a full disk = %v, want a DiskFullError", err)
	}

	if err := os.Remove(filepath.Join(dir, "ballast")); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatalf("Restart with room again = %v", err)
	}
	if got := messages(t, server.URL()); got < 1 {
		t.Errorf("messages after the restart = %d, want the acknowledged ones", got)
	}
}

func checkDiskFullMessage(t *testing.T, full *localnats.DiskFullError) {
	t.Helper()
	for _, part := range []string{full.Dir, "no room", "make room"} {
		if !strings.Contains(full.Error(), part) {
			t.Errorf("message %q lacks %q", full, part)
		}
	}
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for {
		if _, err := file.Write(make([]byte, 1<<20)); err != nil {
			return
		}
	}
}

func start(t *testing.T, options localnats.Options) *localnats.Server {
	t.Helper()
	server, err := localnats.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	return server
}

func stop(t *testing.T, server *localnats.Server) {
	t.Helper()
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
}

func serve(t *testing.T, dir string) (process *exec.Cmd, url string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "LOCALNATS_SERVE="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 256)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	url = strings.TrimSpace(string(line[:n]))
	if !strings.HasPrefix(url, "nats://") {
		t.Fatalf("the server process said %q", url)
	}
	return cmd, url
}

func connect(t *testing.T, url string) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func publish(t *testing.T, url, body string) {
	t.Helper()
	js := connect(t, url)
	_, err := js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{
		Name: "RELAYOPS", Subjects: []string{"events.>"}, MaxBytes: 10 << 30,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "events.acme.OrderConfirmed", []byte(body)); err != nil {
		t.Fatal(err)
	}
}

func messages(t *testing.T, url string) uint64 {
	t.Helper()
	stream, err := connect(t, url).Stream(t.Context(), "RELAYOPS")
	if err != nil {
		t.Fatal(err)
	}
	return stream.CachedInfo().State.Msgs
}
