package testenv

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relayops/relayops/internal/localpostgres"
	"github.com/relayops/relayops/internal/schema"
)

// Tests survive no power failure, and many run at once.
var testSettings = map[string]string{
	"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_connections": "300",
	"max_prepared_transactions": "10",
}

// sharedCluster is the PostgreSQL of this test process, started when first asked for.
type sharedCluster struct {
	once     sync.Once
	server   *localpostgres.Server
	dir      string
	url      string
	template string
	err      error
}

var shared sharedCluster

func (c *sharedCluster) start() error {
	c.once.Do(func() { c.err = c.startOnce() })
	return c.err
}

func (c *sharedCluster) startOnce() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c.url = os.Getenv("RELAYOPS_TEST_DATABASE_URL")
	if c.url == "" {
		dir, err := reachableTempDir()
		if err != nil {
			return err
		}
		c.dir = dir
		if c.server, err = localpostgres.Start(ctx, localpostgres.Options{
			Dir: filepath.Join(dir, "postgres"), Settings: testSettings,
		}); err != nil {
			return fmt.Errorf("start PostgreSQL for the tests: %w", err)
		}
		c.url = c.server.URL()
	}
	c.template = databaseName("template")
	if err := execute(ctx, c.url, "CREATE DATABASE "+c.template); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, withDatabase(c.url, c.template))
	if err != nil {
		return fmt.Errorf("connect to the template database: %w", err)
	}
	_, err = schema.Migrate(ctx, conn)
	return errors.Join(err, conn.Close(ctx))
}

func (c *sharedCluster) stop() error {
	if c.template == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if c.server == nil {
		return execute(ctx, c.url, "DROP DATABASE IF EXISTS "+c.template+" WITH (FORCE)")
	}
	return errors.Join(c.server.Stop(ctx), os.RemoveAll(c.dir))
}

// reachableTempDir is a new directory that the server's account may enter.
func reachableTempDir() (string, error) {
	dir, err := os.MkdirTemp("", "relayops-test-")
	if err != nil {
		return "", fmt.Errorf("make a directory for PostgreSQL: %w", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // The server runs as somebody else.
		return "", fmt.Errorf("open %s to PostgreSQL: %w", dir, err)
	}
	return dir, nil
}

// Database is the URL of a migrated database that only this test has.
func Database(t testing.TB) string {
	t.Helper()
	return newDatabase(t, true)
}

// EmptyDatabase is the URL of a database without any table, that only this test has.
func EmptyDatabase(t testing.TB) string {
	t.Helper()
	return newDatabase(t, false)
}

// Pool is a pool on the database at databaseURL, closed at the test's end.
func Pool(t testing.TB, databaseURL string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), databaseURL)
	if err != nil {
		t.Fatalf("make a pool: %v", err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// Postgres is a server that only this test has, to be stopped, killed and restarted, with its database migrated.
func Postgres(t testing.TB) *localpostgres.Server {
	t.Helper()
	dir, err := reachableTempDir()
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	server, err := localpostgres.Start(ctx, localpostgres.Options{
		Dir: filepath.Join(dir, "postgres"), Settings: testSettings,
	})
	if err != nil {
		t.Fatalf("start PostgreSQL: %v", err)
	}
	t.Cleanup(func() {
		if err := errors.Join(server.Kill(), os.RemoveAll(dir)); err != nil {
			t.Errorf("stop PostgreSQL: %v", err)
		}
	})
	conn, err := pgx.Connect(ctx, server.URL())
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	if _, err := schema.Migrate(ctx, conn); err != nil {
		t.Fatalf("migrate: %v", err)
	}
	if err := conn.Close(ctx); err != nil {
		t.Fatalf("close: %v", err)
	}
	return server
}

func newDatabase(t testing.TB, migrated bool) string {
	t.Helper()
	if err := shared.start(); err != nil {
		t.Fatal(err)
	}
	name, template := databaseName("test"), "template0"
	if migrated {
		template = shared.template
	}
	ctx := context.Background()
	if err := execute(ctx, shared.url, "CREATE DATABASE "+name+" TEMPLATE "+template); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := execute(ctx, shared.url, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	return withDatabase(shared.url, name)
}

func databaseName(kind string) string {
	return "relayops_" + kind + "_" + uuid.New().String()[:8] + uuid.New().String()[:4]
}

func execute(ctx context.Context, databaseURL, sql string) error {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return fmt.Errorf("connect to the tests' PostgreSQL: %w", err)
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}

func withDatabase(databaseURL, name string) string {
	parsed, err := url.Parse(databaseURL)
	if err != nil {
		panic(fmt.Sprintf("RELAYOPS_TEST_DATABASE_URL: %v", err))
	}
	parsed.Path = "/" + name
	return parsed.String()
}
