package relay

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/relayops/relayops/internal/runspec"
)

func TestEnvironmentDefaults(t *testing.T) {
	t.Setenv("DATABASE_URL", "postgres://u:secret@db/shop")
	spec, err := FromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	if spec.PollInterval != runspec.Duration(2*time.Second) || spec.BatchSize != 50 || spec.MaxAttempts != 10 || spec.Suspended {
		t.Errorf("poll %s, batch %d, attempts %d, suspended %t", spec.PollInterval, spec.BatchSize, spec.MaxAttempts, spec.Suspended)
	}
	if spec.Stream.MaxBytes != 10<<30 || spec.Stream.MaxAge != runspec.Duration(7*24*time.Hour) {
		t.Errorf("stream: %+v", spec.Stream)
	}
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "secret") {
		t.Error("the specification holds the password")
	}
}

func TestEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		"DATABASE_URL": "postgres://u@db/shop", "NATS_URL": "nats://a,nats://b", "OUTBOX_POLL_INTERVAL_MS": "500",
		"OUTBOX_BATCH_SIZE": "7", "OUTBOX_MAX_ATTEMPTS": "3", "OUTBOX_RELAY_ENABLED": "false", "STREAM_MAX_AGE": "48h",
		"OUTBOX_TABLE": `{"schema": "public", "name": "Outbox", "columns": {"event_id": "id", "org_id": "orgId"}}`,
	} {
		t.Setenv(name, value)
	}
	spec, err := FromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	want := runspec.Table{Schema: "public", Name: "Outbox", Columns: map[string]string{"event_id": "id", "org_id": "orgId"}}
	if !reflect.DeepEqual(spec.Table, want) {
		t.Errorf("table: %+v", spec.Table)
	}
	if spec.NATS.URL != "nats://a,nats://b" || spec.PollInterval != runspec.Duration(500*time.Millisecond) ||
		spec.BatchSize != 7 || spec.MaxAttempts != 3 || !spec.Suspended || spec.Stream.MaxAge != runspec.Duration(48*time.Hour) {
		t.Errorf("specification: %+v", spec)
	}
}

func TestEnvironmentMistakes(t *testing.T) {
	if _, err := FromEnvironment(); err == nil || !strings.HasPrefix(err.Error(), "DATABASE_URL: found nothing, allowed: ") {
		t.Errorf("no database: %v", err)
	}
	for name, value := range map[string]string{
		"DATABASE_URL": "postgres://u@db/shop", "OUTBOX_POLL_INTERVAL_MS": "2s", "OUTBOX_BATCH_SIZE": "many",
		"OUTBOX_RELAY_ENABLED": "ja", "STREAM_MAX_AGE": "7d", "OUTBOX_TABLE": `{"nome": "x"}`,
	} {
		t.Setenv(name, value)
	}
	_, err := FromEnvironment()
	if err == nil {
		t.Fatal("five mistakes and no error")
	}
	for _, want := range []string{
		`OUTBOX_POLL_INTERVAL_MS: found "2s", allowed: a whole number of milliseconds, 0 or more`,
		`OUTBOX_BATCH_SIZE: found "many", allowed: a whole number`, `OUTBOX_RELAY_ENABLED: found "ja", allowed: true or false`,
		`STREAM_MAX_AGE: found "7d", allowed: a duration, such as "2m" or "168h"`, `OUTBOX_TABLE: found "{\"nome\": \"x\"}", allowed: JSON such as`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

func TestLoadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relay.json")
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("missing file: %v", err)
	}
	for content, want := range map[string]string{
		`{"key": "a/b/c", "pollInterval": "2s"}`: "", `{"kez": "a"}`: `unknown field "kez"`, `{"pollInterval": 2}`: `allowed: a string such as "2s"`,
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		spec, err := Load(path)
		if want == "" && (err != nil || spec.Key != "a/b/c") {
			t.Errorf("%s: %+v, %v", content, spec, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", content, err, want)
		}
	}
}
