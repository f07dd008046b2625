package environment

import (
	"strings"
	"testing"
	"time"

	"github.com/relayops/relayops/internal/runspec"
)

type sample struct {
	Connections
	Wait  Milliseconds  `env:"SAMPLE_WAIT_MS" envDefault:"250"`
	Age   time.Duration `env:"SAMPLE_AGE" envDefault:"1h"`
	On    bool          `env:"SAMPLE_ON"`
	Table Table         `env:"SAMPLE_TABLE"`
}

func TestParse(t *testing.T) {
	t.Setenv("DATABASE_URL", "postgres://u:secret@db/shop")
	t.Setenv("SAMPLE_TABLE", `{"name": "Outbox"}`)
	v, err := Parse[sample]()
	if err != nil {
		t.Fatal(err)
	}
	database, err := v.Database()
	if err != nil || database.URLEnv != "DATABASE_URL" || database.URL != "" || database.MaxConnections != 10 {
		t.Errorf("database: %+v, %v", database, err)
	}
	if v.Wait.Duration() != runspec.Duration(250*time.Millisecond) || v.Table.Name != "Outbox" {
		t.Errorf("variables: %+v", v)
	}
	if nats := v.NATS(); nats.URL != "nats://127.0.0.1:4222" {
		t.Errorf("NATS: %+v", nats)
	}
}

func TestParseNamesEveryMistake(t *testing.T) {
	for name, value := range map[string]string{
		"SAMPLE_WAIT_MS": "-1", "SAMPLE_AGE": "two", "SAMPLE_ON": "maybe", "DATABASE_MAX_CONNECTIONS": "many",
		"SAMPLE_TABLE": `{"nam": "x"}`,
	} {
		t.Setenv(name, value)
	}
	_, err := Parse[sample]()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`SAMPLE_WAIT_MS: found "-1", allowed: a whole number of milliseconds, 0 or more`,
		`SAMPLE_AGE: found "two", allowed: a duration, such as "2m" or "168h"`,
		`SAMPLE_ON: found "maybe", allowed: true or false`,
		`DATABASE_MAX_CONNECTIONS: found "many", allowed: a whole number`,
		`SAMPLE_TABLE: found "{\"nam\": \"x\"}", allowed: JSON such as`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %s:\n%v", want, err)
		}
	}
}

func TestDatabaseNeedsOneURL(t *testing.T) {
	none := Connections{}
	if _, err := none.Database(); err == nil || !strings.HasPrefix(err.Error(), "DATABASE_URL: found nothing") {
		t.Errorf("none: %v", err)
	}
	both := Connections{DatabaseURL: "a", DatabaseURLFile: "b"}
	if _, err := both.Database(); err == nil || !strings.Contains(err.Error(), "found both") {
		t.Errorf("both: %v", err)
	}
}
