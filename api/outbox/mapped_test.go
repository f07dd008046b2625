package outbox_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relayops/relayops/api/outbox"
)

// prismaTable makes an outbox as Prisma would: camelCase, an enum, text ids, timestamps without time zone.
func prismaTable(t *testing.T, pool *pgxpool.Pool) outbox.Table {
	t.Helper()
	if _, err := pool.Exec(t.Context(), `
		CREATE TYPE public."OutboxStatus" AS ENUM ('PENDING', 'PUBLISHED', 'FAILED');
		CREATE TABLE public."OutboxEvent" (
			"id"            text           NOT NULL,
			"orgId"         text           NOT NULL,
			"eventType"     text           NOT NULL,
			"eventVersion"  integer        NOT NULL DEFAULT 1,
			"aggregateType" text,
			"aggregateId"   text,
			"correlationId" text,
			"causationId"   text,
			"payload"       jsonb          NOT NULL,
			"headers"       json           NOT NULL DEFAULT '{}',
			"occurredAt"    timestamp(3)   NOT NULL,
			"createdAt"     timestamp(3)   NOT NULL,
			"status"        public."OutboxStatus" NOT NULL DEFAULT 'PENDING',
			"availableAt"   timestamp(3)   NOT NULL DEFAULT CURRENT_TIMESTAMP,
			"attempts"      integer        NOT NULL,
			"publishedAt"   timestamp(3),
			CONSTRAINT "OutboxEvent_pkey" PRIMARY KEY ("id", "orgId")
		)`); err != nil {
		t.Fatal(err)
	}
	return outbox.Table{Name: "OutboxEvent", Columns: map[string]string{
		"position": "", "event_id": "id", "org_id": "orgId", "event_type": "eventType", "event_version": "eventVersion",
		"aggregate_type": "aggregateType", "aggregate_id": "aggregateId", "correlation_id": "correlationId",
		"causation_id": "causationId", "payload_sha256": "", "occurred_at": "occurredAt", "created_at": "createdAt",
		"available_at": "availableAt", "operation_version": "", "last_error": "", "published_at": "publishedAt",
		"stream": "", "stream_seq": "",
	}}
}
