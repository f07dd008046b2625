package schema_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/relayops/relayops/api/outbox"
	"github.com/relayops/relayops/internal/schema"
	"github.com/relayops/relayops/internal/testenv"
)

// camelCase maps a table as an ORM makes it; columns that are not there are mapped to "".
var camelCase = outbox.Table{Schema: "shop", Name: "OutboxEvent", Columns: map[string]string{
	"position": "", "event_id": "id", "org_id": "orgId", "event_type": "eventType", "event_version": "",
	"aggregate_type": "", "aggregate_id": "", "correlation_id": "", "causation_id": "", "headers": "",
	"occurred_at": "occurredAt", "created_at": "", "available_at": "availableAt", "operation_version": "",
	"last_error": "lastError", "published_at": "", "stream": "", "stream_seq": "",
}}

const goodColumns = `"id" uuid, "orgId" text, "eventType" text, "payload" jsonb, "occurredAt" timestamptz,
	"status" text, "availableAt" timestamptz, "attempts" integer, "lastError" varchar(64)`

const goodIndexes = `CREATE UNIQUE INDEX ON shop."OutboxEvent" ("orgId", "id");
	CREATE INDEX ON shop."OutboxEvent" ("availableAt") WHERE status = 'PENDING'`

func TestFitTable(t *testing.T) {
	for name, statements := range map[string]string{
		"plain": `CREATE TABLE shop."OutboxEvent" (` + goodColumns + `);` + goodIndexes,
		"other types": `CREATE TYPE shop.status AS ENUM ('PENDING', 'PUBLISHED', 'FAILED', 'ARCHIVED');
			CREATE DOMAIN shop.tenant AS varchar(40); CREATE DOMAIN shop.tenant_2 AS shop.tenant NOT NULL;
			CREATE TABLE shop."OutboxEvent" ("id" uuid, "orgId" shop.tenant_2, "eventType" varchar, "payload" json,
				"occurredAt" timestamp(3), "status" shop.status, "availableAt" timestamp, "attempts" smallint,
				"lastError" varchar(100), UNIQUE ("id", "orgId"));
			CREATE INDEX ON shop."OutboxEvent" ("status", "availableAt")`,
		"partitioned": `CREATE TABLE shop."OutboxEvent" (` + goodColumns + `) PARTITION BY LIST ("orgId");
			CREATE TABLE shop.rest PARTITION OF shop."OutboxEvent" DEFAULT;` + goodIndexes,
	} {
		t.Run(name, func(t *testing.T) {
			conn := connect(t, testenv.EmptyDatabase(t))
			exec(t, conn, "CREATE SCHEMA shop;"+statements)
			warnings, err := schema.CheckTable(t.Context(), conn, camelCase)
			if err != nil || len(warnings) > 0 {
				t.Fatalf("found %v, %v", warnings, err)
			}
		})
	}
}

func TestUnfitTableNamesEachFault(t *testing.T) {
	conn := connect(t, testenv.EmptyDatabase(t))
	exec(t, conn, `CREATE SCHEMA shop; CREATE TYPE shop.status AS ENUM ('PENDING', 'DONE');
		CREATE TABLE shop."OutboxEvent" ("id" bigint, "org_id" text, "eventType" text, "payload" text,
			"occurredAt" timestamptz GENERATED ALWAYS AS ('2020-01-01Z'::timestamptz) STORED, "status" shop.status,
			"availableAt" date, "attempts" integer, "lastError" varchar(10), UNIQUE ("id"))`)
	_, err := schema.CheckTable(t.Context(), conn, camelCase)
	var unfit *schema.TableError
	if !errors.As(err, &unfit) {
		t.Fatalf("found %v", err)
	}
	for _, want := range []string{
		`column id (for event_id): found type bigint, allowed: uuid or text or character varying`,
		`column orgId (for org_id): found no such column, but "org_id", allowed: text or character varying or uuid`,
		`column payload: found type text, allowed: jsonb or json`,
		`column status: found an enum without PUBLISHED, FAILED`,
		`column availableAt (for available_at): found type date, allowed: timestamp with time zone`,
		`column lastError (for last_error): found character varying(10), allowed: at least 64 characters`,
		`unique key: found none on exactly (orgId, id), allowed: CREATE UNIQUE INDEX CONCURRENTLY ON ` +
			`"shop"."OutboxEvent" ("orgId", "id")`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nis not in: %v", want, err)
		}
	}
	if len(unfit.Faults) != 7 {
		t.Errorf("found %d faults, want 7: %v", len(unfit.Faults), err)
	}
}

func TestMissingColumnIsNamed(t *testing.T) {
	conn := connect(t, testenv.EmptyDatabase(t))
	exec(t, conn, `CREATE SCHEMA shop; CREATE TABLE shop."OutboxEvent" (`+goodColumns+`);`+goodIndexes)
	table := outbox.Table{Schema: "shop", Name: "OutboxEvent", Columns: map[string]string{
		"event_id": "id", "org_id": "orgId", "event_type": "eventType", "occurred_at": "occurredAt",
		"available_at": "availableAt", "last_error": "lastError",
	}}
	_, err := schema.CheckTable(t.Context(), conn, table)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		`column headers: found no such column, allowed: jsonb or json; or map headers to "" where the table has none`,
		`column stream_seq: found no such column`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nis not in: %v", want, err)
		}
	}
}

func TestTableThatIsNone(t *testing.T) {
	conn := connect(t, testenv.EmptyDatabase(t))
	const nothing = "found nothing of this name"
	exec(t, conn, `CREATE SCHEMA shop; CREATE VIEW shop."OutboxEvent" AS SELECT 1 AS id`)
	for name, c := range map[string]struct {
		table outbox.Table
		want  string
	}{
		"a view":       {camelCase, "found a view, allowed: a table"},
		"another case": {outbox.Table{Schema: "shop", Name: "outboxevent", Columns: camelCase.Columns}, nothing},
		"not migrated": {outbox.Table{}, nothing},
	} {
		if _, err := schema.CheckTable(t.Context(), conn, c.table); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: found %v", name, err)
		}
	}
}

func TestTableWarnings(t *testing.T) {
	conn := connect(t, testenv.EmptyDatabase(t))
	exec(t, conn, `CREATE SCHEMA shop; CREATE TABLE shop."OutboxEvent" (`+
		strings.Replace(goodColumns, `"id" uuid`, `"id" text PRIMARY KEY, "shard" integer NOT NULL`, 1)+`);
		CREATE UNIQUE INDEX ON shop."OutboxEvent" ("orgId", "id"); CREATE INDEX ON shop."OutboxEvent" ("availableAt")`)
	warnings, err := schema.CheckTable(t.Context(), conn, camelCase)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(warnings, "\n")
	for _, want := range []string{
		"two organisations cannot have an event of the same id",
		`CREATE INDEX CONCURRENTLY ON "shop"."OutboxEvent" ("availableAt") WHERE "status" = 'PENDING'`,
		"shard must have a value and no default",
		"a row whose id is no UUID ends FAILED",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("%s\nis not in: %s", want, all)
		}
	}
	if len(warnings) != 4 {
		t.Errorf("found %d warnings: %s", len(warnings), all)
	}
}

// An index that is partial on other rows, or invalid, or of more columns, makes no key.
func TestWhatIsNoUniqueKey(t *testing.T) {
	for name, index := range map[string]string{
		"partial":      `CREATE UNIQUE INDEX ON shop."OutboxEvent" ("orgId", "id") WHERE status = 'PENDING'`,
		"expression":   `CREATE UNIQUE INDEX ON shop."OutboxEvent" (lower("orgId"), "id")`,
		"more columns": `CREATE UNIQUE INDEX ON shop."OutboxEvent" ("orgId", "id", "status")`,
		"included":     `CREATE UNIQUE INDEX ON shop."OutboxEvent" ("orgId") INCLUDE ("id")`,
		"not unique":   `CREATE INDEX ON shop."OutboxEvent" ("orgId", "id")`,
	} {
		conn := connect(t, testenv.EmptyDatabase(t))
		exec(t, conn, `CREATE SCHEMA shop; CREATE TABLE shop."OutboxEvent" (`+goodColumns+`);`+index)
		_, err := schema.CheckTable(t.Context(), conn, camelCase)
		if err == nil || !strings.Contains(err.Error(), "unique key") {
			t.Errorf("%s: found %v", name, err)
		}
	}
}

func TestTableRights(t *testing.T) {
	databaseURL := testenv.Database(t)
	exec(t, connect(t, databaseURL), `CREATE SCHEMA shop; CREATE TABLE shop."OutboxEvent" (`+goodColumns+`);`+goodIndexes)
	conn, role := as(t, databaseURL)
	_, err := schema.CheckTable(t.Context(), conn, camelCase)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		"GRANT USAGE ON SCHEMA \"shop\" TO " + role, `GRANT SELECT ON "shop"."OutboxEvent" TO ` + role,
		`GRANT UPDATE ("status", "available_at"`,
	} {
		want = strings.Replace(want, `"available_at"`, `"availableAt"`, 1)
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nis not in: %v", want, err)
		}
	}
	_, err = schema.CheckTable(t.Context(), conn, outbox.Table{})
	if err == nil || !strings.Contains(err.Error(), "GRANT SELECT") {
		t.Errorf("the standard table: %v", err)
	}
	allowed, _ := as(t, databaseURL, `GRANT USAGE ON SCHEMA relayops`, `GRANT SELECT ON relayops.outbox_events`,
		`GRANT UPDATE (status, available_at, attempts, last_error, published_at, stream, stream_seq)
			ON relayops.outbox_events`)
	if _, err := schema.CheckTable(t.Context(), allowed, outbox.Table{}); err != nil {
		t.Errorf("with the rights: %v", err)
	}
}
