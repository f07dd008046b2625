package stream

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/relayops/relayops/internal/runspec"
)

// codeSubjectsOverlap is the JetStream API's code for a subject that another stream has.
const codeSubjectsOverlap jetstream.ErrorCode = 10065

// State is a stream as the broker has it.
type State struct {
	Outcome
	Info *jetstream.StreamInfo
}

// Ensure brings the stream to what the specification wants, and returns it as it is then. Its own errors are
// [OwnedByOtherError], [ConflictError], [OverlapError] and [VersionError]; others come from the broker.
func Ensure(ctx context.Context, js jetstream.JetStream, spec runspec.Stream) (State, error) {
	if err := CheckVersion(js.Conn()); err != nil {
		return State{}, err
	}
	state, err := ensureStream(ctx, js, spec)
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		// Somebody else made it between our look and our own making: look again.
		state, err = ensureStream(ctx, js, spec)
	}
	if err != nil {
		return State{}, fmt.Errorf("ensure stream %s: %w", spec.Name, err)
	}
	return state, nil
}

func ensureStream(ctx context.Context, js jetstream.JetStream, spec runspec.Stream) (State, error) {
	existing, err := js.Stream(ctx, spec.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return createStream(ctx, js, spec)
	}
	if err != nil {
		return State{}, err
	}
	info := existing.CachedInfo()
	found := &info.Config
	object := "stream " + spec.Name
	owner := found.Metadata[MetadataInstance]
	if owner != "" && owner != spec.InstanceKey {
		return State{}, &OwnedByOtherError{Object: object, Owner: owner, Wanted: spec.InstanceKey}
	}
	wanted := desiredStream(spec, found)
	difference := diffStream(found, &wanted)
	if err := difference.conflict(object, owner == ""); err != nil {
		return State{}, err
	}
	if !difference.differs() {
		return State{Outcome: Outcome{Applied: Unchanged}, Info: info}, nil
	}
	updated, err := js.UpdateStream(ctx, wanted)
	if err != nil {
		return State{}, overlap(ctx, js, spec, err)
	}
	return State{Outcome: outcome(owner == "", &difference), Info: updated.CachedInfo()}, nil
}

func createStream(ctx context.Context, js jetstream.JetStream, spec runspec.Stream) (State, error) {
	created, err := js.CreateStream(ctx, desiredStream(spec, nil))
	if err != nil {
		return State{}, overlap(ctx, js, spec, err)
	}
	return State{Outcome: Outcome{Applied: Created}, Info: created.CachedInfo()}, nil
}

// overlap makes an OverlapError of the broker's refusal, which does not say which stream it is.
func overlap(ctx context.Context, js jetstream.JetStream, spec runspec.Stream, err error) error {
	var api *jetstream.APIError
	if !errors.As(err, &api) || api.ErrorCode != codeSubjectsOverlap {
		return err
	}
	names := js.StreamNames(ctx, jetstream.WithStreamListSubject(Subject(spec.SubjectPrefix)))
	other := ""
	for name := range names.Name() {
		if name != spec.Name && other == "" {
			other = name
		}
	}
	return &OverlapError{Stream: spec.Name, Subject: Subject(spec.SubjectPrefix), Other: other}
}

// conflict is a ConflictError if the difference cannot, or must not, be repaired.
func (c *comparison) conflict(object string, unmarked bool) error {
	switch {
	case len(c.fixed) > 0:
		return &ConflictError{Object: object, Fields: c.fixed}
	case unmarked && len(c.risky) > 0:
		return &ConflictError{Object: object, Fields: c.risky, Unmarked: true}
	default:
		return nil
	}
}

func outcome(adopted bool, difference *comparison) Outcome {
	applied := Updated
	if adopted {
		applied = Adopted
	}
	return Outcome{Applied: applied, Changes: difference.changes()}
}
