// Package event defines the envelope that travels from an application's outbox to a pipeline: its fields and
// their limits, its form on the wire (NATS subject, message headers, body), and the errors that refuse a bad one.
//
// The body of a message is the event's payload, byte for byte as PostgreSQL prints its jsonb; everything else of
// the envelope travels in headers, so that a consumer can route without parsing the body and CloudEvents' binary
// mode costs nothing more. A payload above the relay's inline limit does not travel at all (claim check): the
// header RelayOps-Payload-Ref says where it is.
//
// This package imports no database, broker or Kubernetes client, and nothing internal.
package event
