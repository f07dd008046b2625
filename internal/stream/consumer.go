package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Consumer is a pipeline's durable pull consumer as it is wanted.
type Consumer struct {
	// Stream and Name say where it is. Name has no white space and none of . * > / \.
	Stream, Name string
	// PipelineKey marks its owner.
	PipelineKey string
	// FilterSubjects are the subjects that it gets, at least one; see event.FilterSubject. They must not overlap; equal
	// ones count once.
	FilterSubjects []string
	// AckWait is how long the broker waits for an acknowledgement or a sign of progress before it delivers again.
	AckWait time.Duration
	// MaxDeliver is how often a message is delivered at most.
	MaxDeliver int
	// MaxAckPending bounds the messages that are delivered and not acknowledged.
	MaxAckPending int
	// StartSequence is the first stream sequence that it gets, 1 or more. It counts only when the consumer is made: the
	// start of an existing consumer stays as it is.
	StartSequence uint64
}

// ConsumerState is a consumer as the broker has it.
type ConsumerState struct {
	Outcome
	Consumer jetstream.Consumer
	Info     *jetstream.ConsumerInfo
	// StartReset: the wanted StartSequence lies beyond the stream's end, as after the stream was made anew. The consumer
	// then begins at the stream's first message, and the caller drops what it is not subscribed to.
	StartReset bool
}

// StartSequence is where the consumer began: its configured sequence, or 1 for all messages.
func (s *ConsumerState) StartSequence() uint64 { return max(s.Info.Config.OptStartSeq, 1) }

// EnsureConsumer brings a pipeline's consumer to what is wanted. Its own errors are [OwnedByOtherError],
// [ConflictError] and [VersionError]; a missing stream is jetstream.ErrStreamNotFound, others come from the broker.
func EnsureConsumer(ctx context.Context, js jetstream.JetStream, wanted Consumer) (ConsumerState, error) {
	if err := CheckVersion(js.Conn()); err != nil {
		return ConsumerState{}, err
	}
	state, err := ensureConsumer(ctx, js, wanted)
	if errors.Is(err, jetstream.ErrConsumerExists) {
		// Another worker made it between our look and our own making: look again.
		state, err = ensureConsumer(ctx, js, wanted)
	}
	if err != nil {
		return ConsumerState{}, fmt.Errorf("ensure consumer %s of stream %s: %w", wanted.Name, wanted.Stream, err)
	}
	return state, nil
}

func ensureConsumer(ctx context.Context, js jetstream.JetStream, spec Consumer) (ConsumerState, error) {
	existing, err := js.Consumer(ctx, spec.Stream, spec.Name)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return createConsumer(ctx, js, spec)
	}
	if err != nil && !errors.Is(err, jetstream.ErrNotPullConsumer) {
		return ConsumerState{}, err
	}
	object := fmt.Sprintf("consumer %s of stream %s", spec.Name, spec.Stream)
	if err != nil {
		return ConsumerState{}, &ConflictError{Object: object, Fields: []FieldChange{
			{"deliver_subject", "a push consumer's", "none: a pull consumer"},
		}}
	}
	info := existing.CachedInfo()
	found := &info.Config
	owner := found.Metadata[MetadataPipeline]
	if owner != "" && owner != spec.PipelineKey {
		return ConsumerState{}, &OwnedByOtherError{Object: object, Owner: owner, Wanted: spec.PipelineKey}
	}
	wanted := desiredConsumer(spec, found)
	difference := diffConsumer(found, &wanted)
	if err := difference.conflict(object, owner == ""); err != nil {
		return ConsumerState{}, err
	}
	if !difference.differs() {
		return ConsumerState{Outcome: Outcome{Applied: Unchanged}, Consumer: existing, Info: info}, nil
	}
	updated, err := js.UpdateConsumer(ctx, spec.Stream, wanted)
	if err != nil {
		return ConsumerState{}, err
	}
	return ConsumerState{
		Outcome: outcome(owner == "", &difference), Consumer: updated, Info: updated.CachedInfo(),
	}, nil
}

func createConsumer(ctx context.Context, js jetstream.JetStream, spec Consumer) (ConsumerState, error) {
	stream, err := js.Stream(ctx, spec.Stream)
	if err != nil {
		return ConsumerState{}, err
	}
	reset := spec.StartSequence > stream.CachedInfo().State.LastSeq+1
	if reset {
		spec.StartSequence = 1
	}
	created, err := js.CreateConsumer(ctx, spec.Stream, desiredConsumer(spec, nil))
	if err != nil {
		return ConsumerState{}, err
	}
	return ConsumerState{
		Outcome: Outcome{Applied: Created}, Consumer: created, Info: created.CachedInfo(), StartReset: reset,
	}, nil
}

// desiredConsumer is the consumer as it is wanted. The start position, and fields that are not RelayOps' business, are
// kept as found; found is nil for a consumer that is to be made.
func desiredConsumer(spec Consumer, found *jetstream.ConsumerConfig) jetstream.ConsumerConfig {
	wanted := jetstream.ConsumerConfig{
		Description:   "Pipeline " + spec.PipelineKey,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:   max(spec.StartSequence, 1),
	}
	if found != nil {
		wanted = *found
	}
	subjects := slices.Clone(spec.FilterSubjects)
	slices.Sort(subjects)
	wanted.Name, wanted.Durable = spec.Name, spec.Name
	wanted.FilterSubject, wanted.FilterSubjects = "", slices.Compact(subjects)
	wanted.AckPolicy = jetstream.AckExplicitPolicy
	wanted.ReplayPolicy = jetstream.ReplayInstantPolicy
	wanted.AckWait = spec.AckWait
	wanted.MaxDeliver = spec.MaxDeliver
	wanted.MaxAckPending = spec.MaxAckPending
	wanted.BackOff = nil
	wanted.HeadersOnly = false
	wanted.InactiveThreshold = 0
	wanted.MemoryStorage = false
	wanted.Metadata = withMark(wanted.Metadata, MetadataPipeline, spec.PipelineKey)
	return wanted
}

func diffConsumer(found, wanted *jetstream.ConsumerConfig) comparison {
	var c comparison
	compare(&c.fixed, "ack_policy", found.AckPolicy, wanted.AckPolicy)
	compare(&c.fixed, "replay_policy", found.ReplayPolicy, wanted.ReplayPolicy)
	compare(&c.fixed, "mem_storage", found.MemoryStorage, wanted.MemoryStorage)
	compareSet(&c.risky, "filter_subjects", filters(found), filters(wanted))
	compare(&c.repairable, "ack_wait", found.AckWait, wanted.AckWait)
	compare(&c.repairable, "max_deliver", found.MaxDeliver, wanted.MaxDeliver)
	compare(&c.repairable, "max_ack_pending", found.MaxAckPending, wanted.MaxAckPending)
	compare(&c.repairable, "backoff", len(found.BackOff), len(wanted.BackOff))
	compare(&c.repairable, "headers_only", found.HeadersOnly, wanted.HeadersOnly)
	compare(&c.repairable, "inactive_threshold", found.InactiveThreshold, wanted.InactiveThreshold)
	compare(&c.repairable, MetadataPipeline, found.Metadata[MetadataPipeline], wanted.Metadata[MetadataPipeline])
	return c
}

// filters are a consumer's filter subjects: the broker keeps a single one in another field.
func filters(config *jetstream.ConsumerConfig) []string {
	if config.FilterSubject != "" {
		return append([]string{config.FilterSubject}, config.FilterSubjects...)
	}
	return config.FilterSubjects
}
