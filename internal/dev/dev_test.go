package dev

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/relayops/relayops/internal/devstate"
	"github.com/relayops/relayops/internal/filelock"
	"github.com/relayops/relayops/internal/localnats"
	"github.com/relayops/relayops/internal/localpostgres"
	"github.com/relayops/relayops/internal/manifest"
)

const relayManifest = `apiVersion: relayops.io/v1alpha1
kind: OutboxRelay
metadata: {name: shop}
spec:
  database: {urlSecretRef: {name: db, key: url}}
  nats: {url: "nats://nats:4222"}
  triggers: {OrderConfirmed: order.post}
  allowAllOrgs: true
`

const pipelineManifest = `apiVersion: relayops.io/v1alpha1
kind: Pipeline
metadata: {name: post}
spec:
  relayRef: {name: shop}
  trigger: order.post
  nodes:
    - {id: start, type: start}
    - {id: ok, type: set-status, config: {statusTag: success, name: NAME, phase: order.post}}
  edges: [{from: start, to: ok}]
`

func TestManifestsAreReloadedAndMistakesChangeNothing(t *testing.T) {
	manifests := manifestsDir(t)
	fake := newFake()
	running := startDev(t, Options{Manifests: []string{manifests}, DataDir: dataDir(t)}, fake)
	fake.eventuallyCount(t, "start ", 2)
	first := fake.seen()

	pipeline := filepath.Join(manifests, "pipeline.yaml")
	write(t, pipeline, strings.Replace(pipelineManifest, "type: start}", "type: begin}", 1))
	running.eventually(t, "the manifests have mistakes", `pipeline.yaml`, `spec.nodes[0].type`, `"begin"`)
	if got := fake.seen(); len(got) != len(first) {
		t.Errorf("events after a bad edit = %v, want those before: %v", got, first)
	}

	write(t, pipeline, strings.Replace(pipelineManifest, "NAME", "Renamed", 1))
	running.eventually(t, "changed pipeline default/default/post: revision")
	fake.eventuallyCount(t, "start default/default/post@", 2)

	write(t, filepath.Join(manifests, "second.yaml"), strings.Replace(pipelineManifest, "name: post", "name: second", 1))
	running.eventually(t, "added pipeline default/default/second")
	fake.eventuallyCount(t, "start default/default/second@", 1)

	if err := os.Remove(pipeline); err != nil {
		t.Fatal(err)
	}
	running.eventually(t, "removed pipeline default/default/post")
	fake.eventuallyCount(t, "stop default/default/post@", 2)
}

func TestMistakesAtTheStartStartNothing(t *testing.T) {
	manifests := manifestsDir(t)
	write(t, filepath.Join(manifests, "pipeline.yaml"), strings.Replace(pipelineManifest, "order.post", "order.pst", 1))
	data := filepath.Join(t.TempDir(), "data")
	var problems manifest.Problems
	err := Run(t.Context(), completed(Options{Manifests: []string{manifests}, DataDir: data}, newFake(), &bytes.Buffer{}))
	if !errors.As(err, &problems) || len(problems) != 1 || problems[0].Field != "spec.trigger" {
		t.Fatalf("Run = %v, want the one mistake in spec.trigger", err)
	}
	if _, err := os.Stat(data); err == nil {
		t.Error("the data directory was made all the same")
	}
}

func TestManifestsWithoutARelayAreAMistake(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "secret.yaml"), "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n")
	_, problems := Load(connections("", ""), dir)
	if len(problems) != 1 || !strings.Contains(problems.Error(), "no OutboxRelay") {
		t.Errorf("problems = %v, want that there is no OutboxRelay", problems)
	}
}

func TestASecondInstanceIsRefusedWithTheFirstOnesPID(t *testing.T) {
	options := Options{Manifests: []string{manifestsDir(t)}, DataDir: dataDir(t)}
	startDev(t, options, newFake())
	var inUse *InUseError
	err := Run(t.Context(), completed(options, newFake(), &bytes.Buffer{}))
	if !errors.As(err, &inUse) || inUse.PID != os.Getpid() {
		t.Fatalf("second Run = %v, want an InUseError with pid %d", err, os.Getpid())
	}
}

func TestDataAndPortsSurviveASIGKILL(t *testing.T) {
	data := dataDir(t)
	manifests := manifestsDir(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "DEV_TEST_SERVE="+data, "DEV_TEST_MANIFESTS="+manifests)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	before := awaitState(t, data, cmd.Process.Pid)
	execute(t, before.DatabaseURL, "CREATE TABLE kept AS SELECT 1 AS n")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()

	startDev(t, Options{Manifests: []string{manifests}, DataDir: data}, newFake())
	after, err := devstate.Read(data)
	if err != nil {
		t.Fatal(err)
	}
	if after.DatabaseURL != before.DatabaseURL || after.NATSURL != before.NATSURL {
		t.Errorf("URLs after a restart = %s, %s, want those before: %s, %s",
			after.DatabaseURL, after.NATSURL, before.DatabaseURL, before.NATSURL)
	}
	execute(t, after.DatabaseURL, "SELECT n FROM kept")
}

func TestFreshBeginsWithoutTheOldData(t *testing.T) {
	options := Options{Manifests: []string{manifestsDir(t)}, DataDir: dataDir(t)}
	first := startDev(t, options, newFake())
	state, err := devstate.Read(options.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	execute(t, state.DatabaseURL, "CREATE TABLE kept AS SELECT 1 AS n")
	first.stop(t)

	options.Fresh = true
	startDev(t, options, newFake())
	if state, err = devstate.Read(options.DataDir); err != nil {
		t.Fatal(err)
	}
	execute(t, state.DatabaseURL, "CREATE TABLE kept AS SELECT 1 AS n") // It would exist already.
}

func TestAPortTakenBySomebodyElseIsNamedOrAvoided(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	port := listener.Addr().(*net.TCPAddr).Port
	options := Options{Manifests: []string{manifestsDir(t)}, DataDir: dataDir(t), NATSPort: port}

	var taken *localnats.PortTakenError
	err = Run(t.Context(), completed(options, newFake(), &bytes.Buffer{}))
	if !errors.As(err, &taken) || taken.Port != port {
		t.Fatalf("Run with a taken port = %v, want a PortTakenError", err)
	}
	// A port that an earlier run happened to have is given up for another.
	options.NATSPort = 0
	if err := devstate.Write(options.DataDir, devstate.State{NATSURL: fmt.Sprintf("nats://127.0.0.1:%d", port)}); err != nil {
		t.Fatal(err)
	}
	startDev(t, options, newFake())
}

func TestAPostgreSQLThatDiesIsStartedAgain(t *testing.T) {
	options := Options{Manifests: []string{manifestsDir(t)}, DataDir: dataDir(t)}
	startDev(t, options, newFake())
	state, err := devstate.Read(options.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	dir, _, err := postgresPlace(options.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	content, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(string(content), &pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		conn, err := pgx.Connect(t.Context(), state.DatabaseURL)
		if err == nil {
			_ = conn.Close(t.Context())
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the database does not answer: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestRootsPostgreSQLLiesWhereItsAccountCanGet(t *testing.T) {
	closed := filepath.Join(t.TempDir(), "closed")
	if err := os.MkdirAll(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	dataDir := filepath.Join(closed, "data")
	dir, elsewhere, err := postgresPlace(dataDir)
	if err != nil {
		t.Fatal(err)
	}
	reachable, err := localpostgres.Reachable(dir)
	if err != nil || !reachable {
		t.Errorf("Reachable(%s) = %v, %v", dir, reachable, err)
	}
	if root := os.Geteuid() == 0; elsewhere != root {
		t.Errorf("elsewhere = %v as uid %d", elsewhere, os.Geteuid())
	}
	again, _, err := postgresPlace(dataDir)
	if err != nil || again != dir {
		t.Errorf("place of a second run = %s, %v, want %s", again, err, dir)
	}
}

// serveForTest is a relayops dev in a process of its own, to be killed.
func serveForTest() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	options := Options{Manifests: []string{os.Getenv("DEV_TEST_MANIFESTS")}, DataDir: os.Getenv("DEV_TEST_SERVE")}
	if err := Run(ctx, completed(options, newFake(), os.Stderr)); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// runningDev is a Run in the background.
type runningDev struct {
	out    *lockedBuffer
	cancel context.CancelFunc
	done   chan error
}

func startDev(t *testing.T, options Options, fake *fakeDaemons) *runningDev {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	running := &runningDev{out: &lockedBuffer{}, cancel: cancel, done: make(chan error, 1)}
	go func() { running.done <- Run(ctx, completed(options, fake, running.out)) }()
	t.Cleanup(func() { running.stop(t) })
	running.eventually(t, "Ctrl-C stops")
	return running
}

func (r *runningDev) stop(t *testing.T) {
	t.Helper()
	r.cancel()
	select {
	case err, open := <-r.done:
		if open && err != nil {
			t.Errorf("Run = %v", err)
		}
		if open {
			close(r.done)
		}
	case <-time.After(30 * time.Second):
		t.Error("Run does not return")
	}
}

func (r *runningDev) eventually(t *testing.T, parts ...string) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		text := r.out.String()
		missing := ""
		for _, part := range parts {
			if !strings.Contains(text, part) {
				missing = part
			}
		}
		if missing == "" {
			return
		}
		select {
		case err := <-r.done:
			t.Fatalf("Run = %v before it said %q", err, missing)
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("output lacks %q:\n%s", missing, text)
		}
	}
}

func (f *fakeDaemons) eventuallyCount(t *testing.T, prefix string, want int) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		n := 0
		for _, event := range f.seen() {
			if strings.HasPrefix(event, prefix) {
				n++
			}
		}
		if n == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d events %q in %v, want %d", n, prefix, f.seen(), want)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func completed(options Options, fake *fakeDaemons, out interface{ Write([]byte) (int, error) }) Options {
	options.Out, options.Log, options.Daemons, options.Now = out, slog.New(slog.DiscardHandler), fake.daemons(), time.Now
	return options
}

func manifestsDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "relay.yaml"), relayManifest)
	write(t, filepath.Join(dir, "pipeline.yaml"), pipelineManifest)
	return dir
}

// dataDir is a directory that PostgreSQL's own account can get to, removed at the end.
func dataDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "relayops-dev-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func awaitState(t *testing.T, dataDir string, pid int) devstate.State {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		state, err := devstate.Read(dataDir)
		if err == nil && state.PID == pid {
			return state
		}
		if time.Now().After(deadline) {
			t.Fatalf("no state of process %d: %+v, %v", pid, state, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func execute(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestADatabaseThatCannotBeUsedSaysWhatToDo(t *testing.T) {
	options := Options{Manifests: []string{manifestsDir(t)}, DataDir: dataDir(t)}
	startDev(t, options, newFake())
	state, err := devstate.Read(options.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(state.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	wrongPassword, noDatabase := *address, *address
	wrongPassword.User = url.UserPassword(address.User.Username(), "wrong")
	noDatabase.Path = "/nowhere"
	for want, databaseURL := range map[string]string{
		"refused the password of user":       wrongPassword.String(),
		`create the database "nowhere"`:      noDatabase.String(),
		"nothing listens there: start the s": "postgres://me@127.0.0.1:1/shop",
	} {
		other := Options{Manifests: options.Manifests, DataDir: dataDir(t), DatabaseURL: databaseURL}
		err := Run(t.Context(), completed(other, newFake(), &bytes.Buffer{}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Run = %v, want the advice %q", err, want)
		}
		// What was started was stopped again.
		lock, err := filelock.Acquire(filepath.Join(other.DataDir, "nats", "lock"))
		if err != nil {
			t.Fatal(err)
		}
		_ = lock.Release()
	}
}
