// Package cleanup removes what a deleted OutboxRelay or Pipeline has in broker and database, where its deletionPolicy
// is Delete: a stream, or a consumer and its subscription. What does not carry our own mark is left, and so are all
// tables: executions, dead letters and the outbox are a record.
package cleanup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/relayops/relayops/internal/connect"
	"github.com/relayops/relayops/internal/runspec"
	"github.com/relayops/relayops/internal/stream"
)

const (
	// Timeout bounds a cleanup.
	Timeout = 2 * time.Minute
	// again is how soon the broker is tried again.
	again = 250 * time.Millisecond
)

// ErrSecretMissing means that a file with credentials is not there. Its text is what the operator looks for in the last
// words of a cleanup: waiting would be of no use.
var ErrSecretMissing = errors.New("SecretMissing")

// Relay removes the stream of an OutboxRelay.
func Relay(ctx context.Context, spec runspec.Relay, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	return connect.Explain(onBroker(ctx, spec.NATS, "relayops-cleanup "+spec.Key, log,
		func(ctx context.Context, js jetstream.JetStream) error {
			removed, err := stream.Remove(ctx, js, spec.Stream)
			if err == nil {
				log.Info("stream removed", "stream", spec.Stream.Name, "wasThere", removed)
			}
			return err
		}))
}

// Worker removes the consumer of a Pipeline and its subscription: a Pipeline of the same name begins anew.
func Worker(ctx context.Context, spec runspec.Worker, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	if err := present(spec.Database.URLFile); err != nil {
		return err
	}
	err := onBroker(ctx, spec.NATS, "relayops-cleanup "+spec.PipelineKey, log,
		func(ctx context.Context, js jetstream.JetStream) error {
			removed, err := stream.RemoveConsumer(ctx, js, spec)
			if err == nil {
				log.Info("consumer removed", "consumer", spec.Consumer, "wasThere", removed)
			}
			return err
		})
	if err != nil {
		return connect.Explain(err)
	}
	return connect.Explain(unsubscribe(ctx, spec, log))
}

func unsubscribe(ctx context.Context, spec runspec.Worker, log *slog.Logger) error {
	pool, err := connect.Database(ctx, spec.Database, "relayops-cleanup")
	if err != nil {
		return err
	}
	defer pool.Close()
	const sql = `DELETE FROM relayops.pipeline_subscriptions WHERE pipeline_key = $1`
	tag, err := pool.Exec(ctx, sql, spec.PipelineKey)
	if err != nil {
		return fmt.Errorf("end the subscription of %s: %w", spec.PipelineKey, err)
	}
	log.Info("subscription ended", "pipeline", spec.PipelineKey, "wasThere", tag.RowsAffected() > 0)
	return nil
}

// onBroker does something on the broker, as soon as it is there.
func onBroker(ctx context.Context, spec runspec.NATS, name string, log *slog.Logger,
	do func(context.Context, jetstream.JetStream) error,
) error {
	files := []string{
		spec.CredsFile, spec.UserFile, spec.PasswordFile, spec.TokenFile, spec.CAFile, spec.CertFile, spec.KeyFile,
	}
	for _, file := range files {
		if err := present(file); err != nil {
			return err
		}
	}
	nc, err := connect.NATS(spec, name, log)
	if err != nil {
		return err
	}
	defer nc.Close()
	if err := await(ctx, nc); err != nil {
		return err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("JetStream: %w", err)
	}
	return do(ctx, js)
}

func await(ctx context.Context, nc *nats.Conn) error {
	for !nc.IsConnected() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the broker cannot be reached: %w", errors.Join(nc.LastError(), ctx.Err()))
		case <-time.After(again):
		}
	}
	return nil
}

// present: the file is there and holds something; the empty name is no file.
func present(file string) error {
	if file == "" {
		return nil
	}
	content, err := os.ReadFile(file)
	if err == nil && strings.TrimSpace(string(content)) != "" {
		return nil
	}
	return fmt.Errorf("%w: %s is missing or empty", ErrSecretMissing, file)
}
