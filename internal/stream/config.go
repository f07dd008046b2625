package stream

import (
	"github.com/nats-io/nats.go/jetstream"

	"github.com/relayops/relayops/internal/runspec"
)

// Subject is what the stream listens to: every event's subject <prefix>.<org>.<EventType>.
func Subject(prefix string) string { return prefix + ".*.*" }

// desiredStream is the stream as the specification wants it. Fields that are not RelayOps' business (compression,
// placement, sources, deny_delete, …) are kept as found; found is nil for a stream that is to be made.
func desiredStream(spec runspec.Stream, found *jetstream.StreamConfig) jetstream.StreamConfig {
	wanted := jetstream.StreamConfig{
		Description:  "Events that RelayOps relays from an outbox.",
		MaxConsumers: -1,
	}
	if found != nil {
		wanted = *found
	}
	wanted.Name = spec.Name
	wanted.Subjects = []string{Subject(spec.SubjectPrefix)}
	wanted.Retention = jetstream.LimitsPolicy
	wanted.Storage = jetstream.FileStorage
	wanted.Discard = jetstream.DiscardNew
	wanted.DiscardNewPerSubject = false
	wanted.Replicas = max(spec.Replicas, 1)
	wanted.MaxBytes = unlimited(spec.MaxBytes)
	wanted.MaxMsgs = -1
	wanted.MaxMsgsPerSubject = -1
	wanted.MaxAge = spec.MaxAge.Std()
	wanted.MaxMsgSize = unlimited(spec.MaxMessageBytes)
	wanted.Duplicates = spec.DuplicateWindow.Std()
	wanted.AllowDirect = true
	wanted.NoAck = false
	wanted.Sealed = false
	wanted.Mirror = nil
	wanted.SubjectTransform = nil
	wanted.Metadata = withMark(wanted.Metadata, MetadataInstance, spec.InstanceKey)
	return wanted
}

// unlimited gives 0 the broker's own form of "no limit".
func unlimited[N int32 | int64](limit N) N {
	if limit <= 0 {
		return -1
	}
	return limit
}

func diffStream(found, wanted *jetstream.StreamConfig) comparison {
	var c comparison
	compare(&c.fixed, "storage", found.Storage, wanted.Storage)
	compare(&c.fixed, "retention", found.Retention, wanted.Retention)
	compare(&c.fixed, "sealed", found.Sealed, wanted.Sealed)
	compare(&c.fixed, "mirror", mirrorOf(found), mirrorOf(wanted))
	if found.MaxConsumers > 0 {
		compare(&c.fixed, "max_consumers", found.MaxConsumers, -1)
	}
	// A shorter age drops messages at once; other subjects would mix two purposes.
	if found.MaxAge == 0 || wanted.MaxAge != 0 && wanted.MaxAge < found.MaxAge {
		compare(&c.risky, "max_age", found.MaxAge, wanted.MaxAge)
	} else {
		compare(&c.repairable, "max_age", found.MaxAge, wanted.MaxAge)
	}
	compareSet(&c.risky, "subjects", found.Subjects, wanted.Subjects)
	compare(&c.repairable, "discard", found.Discard, wanted.Discard)
	compare(&c.repairable, "discard_new_per_subject", found.DiscardNewPerSubject, wanted.DiscardNewPerSubject)
	compare(&c.repairable, "num_replicas", found.Replicas, wanted.Replicas)
	compare(&c.repairable, "max_bytes", unlimited(found.MaxBytes), wanted.MaxBytes)
	compare(&c.repairable, "max_msgs", unlimited(found.MaxMsgs), wanted.MaxMsgs)
	compare(&c.repairable, "max_msgs_per_subject", unlimited(found.MaxMsgsPerSubject), wanted.MaxMsgsPerSubject)
	compare(&c.repairable, "max_msg_size", unlimited(found.MaxMsgSize), wanted.MaxMsgSize)
	compare(&c.repairable, "duplicate_window", found.Duplicates, wanted.Duplicates)
	compare(&c.repairable, "allow_direct", found.AllowDirect, wanted.AllowDirect)
	compare(&c.repairable, "no_ack", found.NoAck, wanted.NoAck)
	compare(&c.repairable, "subject_transform", found.SubjectTransform != nil, wanted.SubjectTransform != nil)
	compare(&c.repairable, MetadataInstance, found.Metadata[MetadataInstance], wanted.Metadata[MetadataInstance])
	return c
}

func mirrorOf(config *jetstream.StreamConfig) string {
	if config.Mirror == nil {
		return "none"
	}
	return config.Mirror.Name
}
