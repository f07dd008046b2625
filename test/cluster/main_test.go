//go:build e2e

// Package cluster_test installs RelayOps in a real Kubernetes with Helm, sends events through it while things are
// changed and killed, and counts.
//
//	make e2e-cluster      with the cluster that KUBECONFIG names, or one of hack/cluster
//
// PostgreSQL and NATS run on this machine, at the address by which pods reach it. The build tag e2e keeps it out of
// `go test ./...`, which needs no cluster.
package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	natsserver "github.com/nats-io/nats-server/v2/server"

	"github.com/relayops/relayops/internal/localpostgres"
)

// settings come from the environment, by hack/e2e-cluster.sh.
type settings struct {
	Kubectl, Helm, Image, Host string
}

func readSettings(t *testing.T) settings {
	t.Helper()
	s := settings{
		Kubectl: os.Getenv("RELAYOPS_E2E_KUBECTL"), Helm: os.Getenv("RELAYOPS_E2E_HELM"),
		Image: os.Getenv("RELAYOPS_E2E_IMAGE"), Host: os.Getenv("RELAYOPS_E2E_HOST"),
	}
	if s.Kubectl == "" || s.Helm == "" || s.Image == "" || s.Host == "" {
		t.Fatalf("found %+v; allowed: all four set, as hack/e2e-cluster.sh sets them", s)
	}
	return s
}

// world is the cluster with what the pods need beside it.
type world struct {
	t *testing.T
	settings
	database *localpostgres.Server
	pool     *pgxpool.Pool
	natsURL  string
	// namespace of the shop.
	namespace string
}

const (
	system = "relayops-system"
	// roleName is the user of relays and workers, whose password is rotated.
	roleName = "orders_app"
)

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, settings: readSettings(t), namespace: "shop"}
	w.startPostgres()
	w.startNATS()
	return w
}

func (w *world) startPostgres() {
	w.t.Helper()
	dir, err := os.MkdirTemp("", "relayops-e2e-") // the server runs as another user, who has to enter it
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		w.t.Fatal(err)
	}
	w.database, err = localpostgres.Start(w.t.Context(), localpostgres.Options{
		Dir:      filepath.Join(dir, "postgres"),
		Settings: map[string]string{"listen_addresses": "127.0.0.1," + w.Host, "max_connections": "200"},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := w.database.Kill(); err != nil {
			w.t.Error(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			w.t.Error(err)
		}
	})
	access, err := os.OpenFile(filepath.Join(dir, "postgres", "data", "pg_hba.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := fmt.Fprintln(access, "\nhost all all samenet scram-sha-256\nhost all all 10.0.0.0/8 scram-sha-256"); err != nil {
		w.t.Fatal(err)
	}
	if err := access.Close(); err != nil {
		w.t.Fatal(err)
	}
	if w.pool, err = pgxpool.New(w.t.Context(), w.database.URL()); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(w.pool.Close)
	w.exec("SELECT pg_reload_conf()")
	w.exec("CREATE ROLE " + roleName + " LOGIN SUPERUSER PASSWORD 'first'")
	w.exec("CREATE SCHEMA shop")
	w.exec("CREATE TABLE shop.orders (number text PRIMARY KEY)")
}

func (w *world) startNATS() {
	w.t.Helper()
	server, err := natsserver.NewServer(&natsserver.Options{
		Host: w.Host, Port: natsserver.RANDOM_PORT, JetStream: true, StoreDir: w.t.TempDir(), NoSigs: true,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	go server.Start()
	if !server.ReadyForConnections(20 * time.Second) {
		w.t.Fatal("NATS does not start")
	}
	w.t.Cleanup(func() { server.Shutdown(); server.WaitForShutdown() })
	w.natsURL = server.ClientURL()
}

// databaseURL is that of relays and workers.
func (w *world) databaseURL(password string) string {
	config := w.pool.Config().ConnConfig
	return fmt.Sprintf("postgres://%s:%s@%s:%d/%s?sslmode=disable", roleName, password, w.Host, config.Port, config.Database)
}

func (w *world) exec(sql string, arguments ...any) {
	w.t.Helper()
	if _, err := w.pool.Exec(w.t.Context(), sql, arguments...); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

func (w *world) count(sql string) int {
	w.t.Helper()
	var n int
	if err := w.pool.QueryRow(w.t.Context(), sql).Scan(&n); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// run runs a program, with an input if there is one, and gives what it wrote.
func (w *world) run(input, program string, arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), 4*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, program, arguments...)
	command.Stdin = strings.NewReader(input)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	err := command.Run()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s", filepath.Base(program), strings.Join(arguments, " "), err, out.String())
	}
	return out.String(), err
}

func (w *world) kubectl(arguments ...string) string {
	w.t.Helper()
	out, err := w.run("", w.Kubectl, arguments...)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *world) apply(manifest string) {
	w.t.Helper()
	if _, err := w.run(manifest, w.Kubectl, "-n", w.namespace, "apply", "-f", "-"); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) helm(arguments ...string) {
	w.t.Helper()
	if _, err := w.run("", w.Helm, arguments...); err != nil {
		w.t.Fatal(err)
	}
}

// ready waits for a resource's condition Ready at its present generation.
func (w *world) ready(resources ...string) {
	w.t.Helper()
	for _, resource := range resources {
		w.eventually(2*time.Minute, resource+" is ready", func() (bool, string) {
			out := w.kubectl("-n", w.namespace, "get", resource, "-o", "json")
			var object struct {
				Metadata struct{ Generation int64 }
				Status   struct {
					Conditions []struct {
						Type, Status, Reason, Message string
						ObservedGeneration            int64
					}
				}
			}
			if err := json.Unmarshal([]byte(out), &object); err != nil {
				return false, err.Error()
			}
			for _, c := range object.Status.Conditions {
				if c.Type == "Ready" {
					return c.Status == "True" && c.ObservedGeneration == object.Metadata.Generation, c.Reason + ": " + c.Message
				}
			}
			return false, out
		})
	}
}

func (w *world) eventually(within time.Duration, what string, is func() (bool, string)) {
	w.t.Helper()
	last := ""
	for deadline := time.Now().Add(within); time.Now().Before(deadline); time.Sleep(300 * time.Millisecond) {
		var done bool
		if done, last = is(); done {
			return
		}
	}
	w.t.Fatalf("%s: not within %s; last: %s", what, within, last)
}

// command runs a program after the test's context has ended.
func command(arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, arguments[0], arguments[1:]...).CombinedOutput()
	return string(out), err
}
