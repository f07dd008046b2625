package resolve

import (
	"fmt"

	"github.com/relayops/relayops/api/v1alpha1"
	"github.com/relayops/relayops/internal/runspec"
)

// Relay is the specification of a relay's daemon. Its error is that of a resource that did not pass the schema.
func Relay(relay *v1alpha1.OutboxRelay, mounts Mounts) (runspec.Relay, error) {
	spec, read := relay.Spec, reading{}
	resolved := runspec.Relay{
		Key:                   RelayKey(relay),
		Database:              mounts.database(spec.Database),
		NATS:                  mounts.nats(spec.NATS),
		Table:                 table(spec.Table),
		Stream:                stream(spec, &read),
		Server:                runspec.Server{Address: mounts.ServerAddress},
		PollInterval:          read.duration("pollInterval", spec.PollInterval),
		BatchSize:             int(spec.BatchSize),
		Claimers:              int(spec.Claimers),
		ClaimLease:            read.duration("claimLease", spec.ClaimLease),
		PublishTimeout:        read.duration("publishTimeout", spec.PublishTimeout),
		MaxAttempts:           int(spec.MaxAttempts),
		BackOff:               backOff("backOff", spec.BackOff, &read),
		MaxInlinePayloadBytes: int(read.bytes("maxInlinePayloadBytes", spec.MaxInlinePayloadBytes)),
		CloudEvents:           value(spec.CloudEvents),
		Suspended:             value(spec.Suspend),
	}
	if err := read.err(); err != nil {
		return runspec.Relay{}, fmt.Errorf("OutboxRelay %s/%s: %w", relay.Namespace, relay.Name, err)
	}
	return resolved, nil
}

// RelayKey of an OutboxRelay.
func RelayKey(relay *v1alpha1.OutboxRelay) string {
	return Key(relay.Spec.Instance, relay.Namespace, relay.Name)
}

func table(mapping *v1alpha1.TableMapping) runspec.Table {
	if mapping == nil {
		return runspec.Table{}
	}
	mapped := runspec.Table{Schema: mapping.Schema, Name: mapping.Name}
	if len(mapping.Columns) > 0 {
		mapped.Columns = make(map[string]string, len(mapping.Columns))
		for standard, own := range mapping.Columns {
			mapped.Columns[standard] = string(own)
		}
	}
	return mapped
}

func stream(relay v1alpha1.OutboxRelaySpec, read *reading) runspec.Stream {
	spec := relay.Stream
	return runspec.Stream{
		Name:            spec.Name,
		SubjectPrefix:   spec.SubjectPrefix,
		Replicas:        int(spec.Replicas),
		MaxBytes:        read.bytes("stream.maxBytes", spec.MaxBytes),
		MaxAge:          read.duration("stream.maxAge", spec.MaxAge),
		DuplicateWindow: read.duration("stream.duplicateWindow", spec.DuplicateWindow),
		// The schema bounds it to 64 MiB.
		MaxMessageBytes: int32(read.bytes("stream.maxMessageBytes", spec.MaxMessageBytes)),
		InstanceKey:     relay.Instance,
	}
}

func backOff(field string, spec v1alpha1.BackOff, read *reading) runspec.BackOff {
	return runspec.BackOff{
		Initial:    read.duration(field+".initial", spec.Initial),
		Max:        read.duration(field+".max", spec.Max),
		Multiplier: float64(spec.Multiplier),
		Jitter:     float64(value(spec.JitterPercent)) / 100,
	}
}
