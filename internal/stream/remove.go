package stream

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/relayops/relayops/internal/runspec"
)

// Remove deletes the stream, with its messages and consumers, if its mark says that it is this instance's. It reports
// whether there was one. Its own error is [OwnedByOtherError]: a stream without our mark is somebody's too.
func Remove(ctx context.Context, js jetstream.JetStream, spec runspec.Stream) (bool, error) {
	existing, err := js.Stream(ctx, spec.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look up stream %s: %w", spec.Name, err)
	}
	if owner := existing.CachedInfo().Config.Metadata[MetadataInstance]; owner != spec.InstanceKey {
		return false, &OwnedByOtherError{Object: "stream " + spec.Name, Owner: owner, Wanted: spec.InstanceKey}
	}
	err = js.DeleteStream(ctx, spec.Name)
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return false, fmt.Errorf("delete stream %s: %w", spec.Name, err)
	}
	return err == nil, nil
}

// RemoveConsumer deletes a pipeline's consumer likewise, by the mark of its pipeline key.
func RemoveConsumer(ctx context.Context, js jetstream.JetStream, spec runspec.Worker) (bool, error) {
	existing, err := js.Consumer(ctx, spec.Stream.Name, spec.Consumer)
	if errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look up consumer %s: %w", spec.Consumer, err)
	}
	if owner := existing.CachedInfo().Config.Metadata[MetadataPipeline]; owner != spec.PipelineKey {
		return false, &OwnedByOtherError{Object: "consumer " + spec.Consumer, Owner: owner, Wanted: spec.PipelineKey}
	}
	err = js.DeleteConsumer(ctx, spec.Stream.Name, spec.Consumer)
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return false, fmt.Errorf("delete consumer %s: %w", spec.Consumer, err)
	}
	return err == nil, nil
}
