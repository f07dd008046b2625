package connect

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relayops/relayops/internal/runspec"
)

const (
	// dialTimeout bounds the making of one connection where the DSN sets no connect_timeout.
	dialTimeout = 10 * time.Second
	// pingIdleAfter is how long a pooled connection may lie idle before it is tested on its way out. pgx tests after
	// one second, which would double the queries of a loop that polls every two.
	pingIdleAfter = 30 * time.Second
)

// Database opens a pool. name becomes the connections' application_name. The pool is lazy: it dials on first use, and
// reads URL, file or environment variable for each new connection. The error is that of a DSN that cannot be parsed
// or of a specification that names none; a file that is missing or wrong is an error of each use, not of Database.
//
// Options change the pool's configuration last.
func Database(ctx context.Context, spec runspec.Database, name string, options ...func(*pgxpool.Config),
) (*pgxpool.Pool, error) {
	if err := oneSource(spec); err != nil {
		return nil, err
	}
	config, err := connConfig(spec, readDSN, name)
	if err != nil {
		if spec.URLFile == "" {
			return nil, err
		}
		// The file may come, or be mended, later: BeforeConnect reads it before anything is dialled.
		if config, err = pgx.ParseConfig(""); err != nil {
			return nil, fmt.Errorf("database: default configuration: %w", err)
		}
	}
	pool, err := pgxpool.ParseConfig("")
	if err != nil {
		return nil, fmt.Errorf("database: default pool configuration: %w", err)
	}
	pool.ConnConfig = config
	pool.MaxConns = max(spec.MaxConnections, 2)
	pool.MinConns, pool.MinIdleConns = 0, 0
	pool.BeforeConnect = func(_ context.Context, config *pgx.ConnConfig) error {
		fresh, err := connConfig(spec, readDSN, name)
		if err != nil {
			return err
		}
		fresh.Tracer = config.Tracer
		*config = *fresh
		return nil
	}
	pool.ShouldPing = func(_ context.Context, params pgxpool.ShouldPingParams) bool {
		return params.IdleDuration > pingIdleAfter
	}
	for _, option := range options {
		option(pool)
	}
	opened, err := pgxpool.NewWithConfig(ctx, pool)
	if err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	return opened, nil
}

// Listen opens one connection that can LISTEN: through ListenURLFile where the specification has one. The caller
// closes it.
func Listen(ctx context.Context, spec runspec.Database, name string) (*pgx.Conn, error) {
	config, err := connConfig(spec, readListenDSN, name)
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("database: connect for LISTEN: %w", err)
	}
	return conn, nil
}

func connConfig(spec runspec.Database, read func(runspec.Database) (string, error), name string,
) (*pgx.ConnConfig, error) {
	dsn, err := read(spec)
	if err != nil {
		return nil, err
	}
	// The pool's parser also understands, and takes out, the pool_* parameters that many DSNs carry.
	parsed, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err)
	}
	config := parsed.ConnConfig
	if _, set := config.RuntimeParams["application_name"]; !set {
		config.RuntimeParams["application_name"] = name
	}
	// A mapped table's timestamp without time zone holds UTC, and is compared with now().
	config.RuntimeParams["timezone"] = "UTC"
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = dialTimeout
	}
	if pooled(spec) && config.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		// A pooler in transaction mode hands each transaction another server connection: no named statements.
		config.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	return config, nil
}

// pooled reports whether the main DSN goes through a pooler in transaction mode: that is what the two settings are
// for.
func pooled(spec runspec.Database) bool { return spec.DisableListen || spec.ListenURLFile != "" }

func oneSource(spec runspec.Database) error {
	var found []string
	for _, source := range []struct{ field, value string }{
		{"url", spec.URL}, {"urlFile", spec.URLFile}, {"urlEnv", spec.URLEnv},
	} {
		if source.value != "" {
			found = append(found, source.field)
		}
	}
	if len(found) == 1 {
		return nil
	}
	what := "none of them"
	if len(found) > 1 {
		what = strings.Join(found, " and ")
	}
	return fmt.Errorf("database: found %s, allowed: exactly one of url, urlFile and urlEnv", what)
}

func readDSN(spec runspec.Database) (string, error) {
	switch {
	case spec.URLFile != "":
		return readSecret("database URL", spec.URLFile)
	case spec.URLEnv != "":
		dsn := os.Getenv(spec.URLEnv)
		if dsn == "" {
			return "", fmt.Errorf("environment variable %s: found nothing, allowed: a PostgreSQL URL, such as "+
				"postgres://user@host:5432/database", spec.URLEnv)
		}
		return dsn, nil
	default:
		return spec.URL, nil
	}
}

func readListenDSN(spec runspec.Database) (string, error) {
	if spec.ListenURLFile != "" {
		return readSecret("database URL for LISTEN", spec.ListenURLFile)
	}
	return readDSN(spec)
}

// readSecret reads a credential from a file. The trailing line end that editors and kubectl add is not part of it.
func readSecret(what, path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	text := strings.TrimRight(string(content), "\r\n")
	if text == "" {
		return "", fmt.Errorf("%s: file %s is empty", what, path)
	}
	return text, nil
}
