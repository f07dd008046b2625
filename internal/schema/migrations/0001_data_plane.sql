-- The data plane: outbox, ledger, steps, dead letters.
-- Written for PostgreSQL 13 and later: no uuidv7(), no MERGE, no NULLS NOT DISTINCT.

-- Functions fix their search_path, so that no object of a caller's schema can take the place of a built-in one.

-- UUIDv7 (RFC 9562, section 5.7): 48 bits of Unix milliseconds, version, 74 random bits from gen_random_uuid().
-- set_bit counts from the lowest bit of a byte: 52 and 53 turn the version nibble of byte 6 from 4 into 7, and the
-- variant in byte 8 stays as gen_random_uuid() set it.
CREATE FUNCTION relayops.uuid_v7() RETURNS uuid
LANGUAGE plpgsql VOLATILE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN encode(
    set_bit(set_bit(
      overlay(uuid_send(gen_random_uuid())
        PLACING substring(int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
        FROM 1 FOR 6),
      52, 1), 53, 1),
    'hex')::uuid;
END
$$;

-- The hash of a payload is the SHA-256 of its jsonb text, so that white space and key order make no conflict.
-- It also refuses a payload above the limit (event.MaxPayloadBytes), whoever inserts it.
-- IMMUTABLE although convert_to is only STABLE: the server encoding of a database never changes.
CREATE FUNCTION relayops.payload_sha256(payload jsonb) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  body constant bytea := convert_to(payload::text, 'UTF8');
BEGIN
  IF length(body) > 8388608 THEN
    RAISE EXCEPTION 'payload: found % bytes, allowed: at most 8388608', length(body)
      USING ERRCODE = 'program_limit_exceeded',
            HINT = 'Put large documents in an object store and their address in the event.';
  END IF;
  RETURN sha256(body);
END
$$;

-- The limits of event.Envelope's Headers: an object of at most 64 strings and 16 KiB, keys in lower case.
CREATE FUNCTION relayops.headers_are_valid(headers jsonb) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF jsonb_typeof(headers) <> 'object' THEN
    RETURN false;
  END IF;
  RETURN (SELECT count(*) <= 64
      AND coalesce(sum(octet_length(h.key) + octet_length(h.value #>> '{}')), 0) <= 16384
      AND coalesce(bool_and(jsonb_typeof(h.value) = 'string' AND h.key ~ '^[a-z0-9._-]{1,64}$'
        AND (h.value #>> '{}') !~ '[\x01-\x1f\x7f]'), true)
    FROM jsonb_each(headers) h);
END
$$;

CREATE TABLE relayops.outbox_events (
  position          bigint GENERATED ALWAYS AS IDENTITY,
  event_id          uuid        NOT NULL DEFAULT relayops.uuid_v7(),
  org_id            text        NOT NULL,
  event_type        text        NOT NULL,
  event_version     integer     NOT NULL DEFAULT 1,
  aggregate_type    text        NOT NULL DEFAULT '',
  aggregate_id      text        NOT NULL DEFAULT '',
  correlation_id    text        NOT NULL DEFAULT '',
  causation_id      text        NOT NULL DEFAULT '',
  payload           jsonb       NOT NULL,
  payload_sha256    bytea       NOT NULL GENERATED ALWAYS AS (relayops.payload_sha256(payload)) STORED,
  headers           jsonb       NOT NULL DEFAULT '{}',
  occurred_at       timestamptz NOT NULL DEFAULT now(),
  created_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
  status            text        NOT NULL DEFAULT 'PENDING',
  available_at      timestamptz NOT NULL DEFAULT now(),
  attempts          integer     NOT NULL DEFAULT 0,
  operation_version integer     NOT NULL DEFAULT 1,
  last_error        text        NOT NULL DEFAULT '',
  published_at      timestamptz,
  stream            text,
  stream_seq        bigint,
  CONSTRAINT outbox_events_pkey PRIMARY KEY (org_id, event_id),
  CONSTRAINT org_id_is_1_to_128_bytes CHECK (octet_length(org_id) BETWEEN 1 AND 128),
  CONSTRAINT org_id_has_no_control_characters CHECK (org_id !~ '[\x01-\x1f\x7f]'),
  CONSTRAINT event_type_is_a_name CHECK (event_type ~ '^[A-Za-z][A-Za-z0-9._-]{0,127}$'),
  CONSTRAINT event_version_is_positive CHECK (event_version >= 1),
  CONSTRAINT event_id_is_not_nil CHECK (event_id <> '00000000-0000-0000-0000-000000000000'),
  CONSTRAINT texts_are_at_most_256_bytes CHECK (
    octet_length(aggregate_type) <= 256 AND octet_length(aggregate_id) <= 256 AND
    octet_length(correlation_id) <= 256 AND octet_length(causation_id) <= 256),
  CONSTRAINT texts_have_no_control_characters CHECK (
    aggregate_type || aggregate_id || correlation_id || causation_id !~ '[\x01-\x1f\x7f]'),
  CONSTRAINT headers_are_small_texts CHECK (headers = '{}' OR relayops.headers_are_valid(headers)),
  CONSTRAINT occurred_at_is_in_the_years_1_to_9999 CHECK (
    occurred_at > '0001-01-01 00:00:00+00' AND occurred_at < '10000-01-01 00:00:00+00'),
  CONSTRAINT available_at_is_finite CHECK (isfinite(available_at)),
  CONSTRAINT status_is_known CHECK (status IN ('PENDING', 'PUBLISHED', 'FAILED'))
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);

COMMENT ON TABLE relayops.outbox_events IS
  'Events that applications commit together with their business data; the relay publishes them.';
COMMENT ON COLUMN relayops.outbox_events.position IS
  'Insertion number. Transactions may commit out of its order.';
COMMENT ON COLUMN relayops.outbox_events.last_error IS
  'Code of the last publish error of this event, from a closed list; never an error text.';

-- What the relay claims: due rows, oldest first. Rows in back-off lie beyond now() and are never walked over.
CREATE INDEX outbox_events_due ON relayops.outbox_events (available_at, position) WHERE status = 'PENDING';
CREATE INDEX outbox_events_failed ON relayops.outbox_events (position) WHERE status = 'FAILED';

-- The same id with the same payload is the same event (a retried call); with another payload it is refused (RO409).
-- ordered => true serialises the writers of one aggregate until they commit.
--
-- It runs with its owner's rights, so that an application needs USAGE on the schema and EXECUTE on this function and
-- nothing else: it can neither read the outbox nor write its status.
--
-- Under READ COMMITTED the INSERT waits for a transaction that holds the same key, and the SELECT after it sees what
-- that one committed. Under REPEATABLE READ the INSERT itself fails with serialization_failure, to be tried again.
CREATE FUNCTION relayops.emit_event(
  org_id         text,
  event_type     text,
  payload        jsonb,
  aggregate_type text        DEFAULT '',
  aggregate_id   text        DEFAULT '',
  event_id       uuid        DEFAULT NULL,
  event_version  integer     DEFAULT 1,
  correlation_id text        DEFAULT '',
  causation_id   text        DEFAULT '',
  headers        jsonb       DEFAULT '{}',
  occurred_at    timestamptz DEFAULT NULL,
  available_at   timestamptz DEFAULT NULL,
  ordered        boolean     DEFAULT false
) RETURNS uuid
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  new_id   constant uuid := coalesce(emit_event.event_id, relayops.uuid_v7());
  old_hash bytea;
BEGIN
  IF coalesce(emit_event.org_id, '') = '' THEN
    RAISE EXCEPTION 'org_id: found nothing, allowed: the organisation the event belongs to'
      USING ERRCODE = 'not_null_violation';
  END IF;
  IF coalesce(emit_event.event_type, '') = '' THEN
    RAISE EXCEPTION 'event_type: found nothing, allowed: a name such as OrderConfirmed'
      USING ERRCODE = 'not_null_violation';
  END IF;
  IF emit_event.payload IS NULL THEN
    RAISE EXCEPTION 'payload: found nothing, allowed: a JSON document (the JSON value null is one)'
      USING ERRCODE = 'not_null_violation';
  END IF;
  IF emit_event.ordered THEN
    PERFORM pg_advisory_xact_lock(hashtextextended(emit_event.org_id || E'\x01' ||
      coalesce(emit_event.aggregate_type, '') || E'\x01' || coalesce(emit_event.aggregate_id, ''), 0));
  END IF;
  FOR attempt IN 1..3 LOOP
    INSERT INTO relayops.outbox_events (event_id, org_id, event_type, event_version, aggregate_type, aggregate_id,
      correlation_id, causation_id, payload, headers, occurred_at, available_at)
    VALUES (new_id, emit_event.org_id, emit_event.event_type, coalesce(emit_event.event_version, 1),
      coalesce(emit_event.aggregate_type, ''), coalesce(emit_event.aggregate_id, ''),
      coalesce(emit_event.correlation_id, ''), coalesce(emit_event.causation_id, ''),
      emit_event.payload, coalesce(emit_event.headers, '{}'),
      coalesce(emit_event.occurred_at, now()), coalesce(emit_event.available_at, now()))
    ON CONFLICT ON CONSTRAINT outbox_events_pkey DO NOTHING;
    IF FOUND THEN
      RETURN new_id;
    END IF;
    SELECT o.payload_sha256 INTO old_hash FROM relayops.outbox_events o
      WHERE o.org_id = emit_event.org_id AND o.event_id = new_id;
    IF FOUND THEN
      IF old_hash <> relayops.payload_sha256(emit_event.payload) THEN
        RAISE EXCEPTION 'event % of org % exists with another payload', new_id, emit_event.org_id
          USING ERRCODE = 'RO409', HINT = 'One event id stands for one payload; use a new id for a new event.';
      END IF;
      RETURN new_id;
    END IF;
    -- The retention removed the other row between the two statements: the key is free again.
  END LOOP;
  RAISE EXCEPTION 'event % of org % comes and goes', new_id, emit_event.org_id
    USING ERRCODE = 'serialization_failure', HINT = 'Try the transaction again.';
END
$$;
REVOKE ALL ON FUNCTION relayops.emit_event FROM PUBLIC;

-- Every revision of a pipeline that an execution began with, so that retries and resumes use it.
CREATE TABLE relayops.pipeline_revisions (
  pipeline_key text        NOT NULL,
  revision     text        NOT NULL,
  definition   jsonb       NOT NULL,
  created_at   timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (pipeline_key, revision)
);

-- Where a pipeline's subscription begins, and how far the sweep has accounted for what the broker gave up on.
-- Sequences count within one incarnation of the stream, which is known by the time when it was made.
CREATE TABLE relayops.pipeline_subscriptions (
  pipeline_key  text        PRIMARY KEY,
  trigger       text        NOT NULL,
  orgs          text[]      NOT NULL DEFAULT '{}',
  from_position bigint      NOT NULL,
  until_position bigint,
  stream        text        NOT NULL,
  stream_incarnation timestamptz NOT NULL,
  start_seq     bigint      NOT NULL,
  swept_seq     bigint      NOT NULL DEFAULT 0,
  created_at    timestamptz NOT NULL DEFAULT now(),
  updated_at    timestamptz NOT NULL DEFAULT now()
);

-- The ledger: one row for one (org, pipeline, event, operation version).
CREATE TABLE relayops.pipeline_executions (
  execution_id      uuid        PRIMARY KEY,
  org_id            text        NOT NULL,
  pipeline_key      text        NOT NULL,
  event_id          uuid        NOT NULL,
  operation_version integer     NOT NULL,
  event_type        text        NOT NULL,
  aggregate_type    text        NOT NULL DEFAULT '',
  aggregate_id      text        NOT NULL DEFAULT '',
  correlation_id    text        NOT NULL DEFAULT '',
  trace_parent      text        NOT NULL DEFAULT '',
  payload_sha256    bytea       NOT NULL,
  revision          text        NOT NULL,
  state             text        NOT NULL,
  attempt           integer     NOT NULL DEFAULT 0,
  fencing_token     bigint      NOT NULL DEFAULT 0,
  lease_owner       text        NOT NULL DEFAULT '',
  lease_until       timestamptz,
  due_at            timestamptz,
  deadline_at       timestamptz,
  executed_ms       bigint      NOT NULL DEFAULT 0,
  code              text        NOT NULL DEFAULT '',
  status_tags       jsonb       NOT NULL DEFAULT '[]',
  stream            text        NOT NULL DEFAULT '',
  stream_seq        bigint      NOT NULL DEFAULT 0,
  occurred_at       timestamptz NOT NULL,
  created_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
  started_at        timestamptz,
  finished_at       timestamptz,
  CONSTRAINT pipeline_executions_key UNIQUE (org_id, pipeline_key, event_id, operation_version),
  CONSTRAINT state_is_known CHECK (state IN ('RUNNING', 'RETRY', 'SUCCEEDED', 'DEAD_LETTERED', 'CANCELLED'))
);

-- Due work (RETRY) and abandoned work (RUNNING with a lease that ran out), a partial index each.
CREATE INDEX pipeline_executions_due ON relayops.pipeline_executions (pipeline_key, due_at) WHERE state = 'RETRY';
CREATE INDEX pipeline_executions_leased ON relayops.pipeline_executions (pipeline_key, lease_until)
  WHERE state = 'RUNNING';
CREATE INDEX pipeline_executions_event ON relayops.pipeline_executions (event_id);
-- Lists are in the order of the ids, which are UUIDv7: the primary key serves them for all organisations.
CREATE INDEX pipeline_executions_recent ON relayops.pipeline_executions (org_id, execution_id);
-- A claim whose answer was lost is looked for by the name that it was made under.
CREATE INDEX pipeline_executions_owned ON relayops.pipeline_executions (lease_owner) WHERE state = 'RUNNING';

CREATE TABLE relayops.step_executions (
  execution_id  uuid        NOT NULL REFERENCES relayops.pipeline_executions ON DELETE CASCADE,
  node_id       text        NOT NULL,
  attempt       integer     NOT NULL,
  node_type     text        NOT NULL,
  outcome       text        NOT NULL,
  branch        text        NOT NULL DEFAULT '',
  code          text        NOT NULL DEFAULT '',
  http_status   integer     NOT NULL DEFAULT 0,
  output        jsonb,
  fencing_token bigint      NOT NULL,
  started_at    timestamptz NOT NULL,
  finished_at   timestamptz NOT NULL,
  duration_us   bigint      NOT NULL,
  PRIMARY KEY (execution_id, node_id, attempt),
  CONSTRAINT outcome_is_known CHECK (outcome IN ('SUCCEEDED', 'FAILED', 'CONTINUED', 'SKIPPED', 'INTERRUPTED'))
);

CREATE TABLE relayops.dead_letters (
  dead_letter_id    uuid        PRIMARY KEY,
  org_id            text        NOT NULL,
  pipeline_key      text        NOT NULL,
  event_id          uuid,
  operation_version integer,
  execution_id      uuid        REFERENCES relayops.pipeline_executions ON DELETE SET NULL,
  event_type        text        NOT NULL DEFAULT '',
  code              text        NOT NULL,
  node_id           text        NOT NULL DEFAULT '',
  http_status       integer     NOT NULL DEFAULT 0,
  attempt           integer     NOT NULL DEFAULT 0,
  stream            text        NOT NULL DEFAULT '',
  stream_seq        bigint      NOT NULL DEFAULT 0,
  -- For the letter of a message that never had an execution: when the stream stored the message.
  message_stored_at timestamptz,
  created_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT dead_letters_execution UNIQUE (execution_id),
  CONSTRAINT one_source CHECK (message_stored_at IS NULL OR execution_id IS NULL)
);
-- A message that never had an execution is known by its place in the stream, and by when it was stored there: a stream
-- that was made anew, or restored, counts from a sequence that was used before.
CREATE UNIQUE INDEX dead_letters_message
  ON relayops.dead_letters (pipeline_key, stream, stream_seq, message_stored_at)
  WHERE message_stored_at IS NOT NULL;
CREATE INDEX dead_letters_recent ON relayops.dead_letters (org_id, dead_letter_id);
CREATE INDEX dead_letters_event ON relayops.dead_letters (event_id);

-- Envelopes of unfinished or dead executions whose outbox row is not there (pruned, or published by somebody else).
CREATE TABLE relayops.event_payloads (
  org_id     text        NOT NULL,
  event_id   uuid        NOT NULL,
  envelope   jsonb       NOT NULL,
  payload    jsonb       NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (org_id, event_id)
);
