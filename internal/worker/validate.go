package worker

import (
	"errors"
	"fmt"

	"github.com/relayops/relayops/internal/execution"
	"github.com/relayops/relayops/internal/runspec"
)

// validate reports every field of a specification that a worker cannot work with.
func validate(spec *runspec.Worker) error {
	var faults []error
	fault := func(field string, found any, allowed string) {
		faults = append(faults, fmt.Errorf("%s: found %v, allowed: %s", field, found, allowed))
	}
	text := func(field, value string) {
		if value == "" {
			fault(field, "nothing", "a name")
		}
	}
	positive := func(field string, value runspec.Duration) {
		if value <= 0 {
			fault(field, value, "a duration above 0")
		}
	}
	text("pipelineKey", spec.PipelineKey)
	text("revision", spec.Revision)
	text("consumer", spec.Consumer)
	text("stream.name", spec.Stream.Name)
	text("stream.subjectPrefix", spec.Stream.SubjectPrefix)
	if len(spec.Subscription.EventTypes) == 0 {
		fault("subscription.eventTypes", "none", "one event type or more")
	}
	switch start := execution.Start(spec.Subscription.StartFrom); {
	case start == execution.FromTime && spec.Subscription.StartTime == nil:
		fault("subscription.startTime", "nothing", "a time, with startFrom Time")
	case start != execution.FromNow && start != execution.FromBeginning && start != execution.FromTime:
		fault("subscription.startFrom", fmt.Sprintf("%q", start), "Now, Beginning or Time")
	}
	if spec.Concurrency < 1 || spec.Concurrency > 1000 {
		fault("concurrency", spec.Concurrency, "1 to 1000")
	}
	if spec.MaxAttempts < 1 || spec.MaxAttempts > 100 {
		fault("maxAttempts", spec.MaxAttempts, "1 to 100")
	}
	if spec.MaxDeliver <= spec.MaxAttempts {
		fault("maxDeliver", spec.MaxDeliver, fmt.Sprintf("more than maxAttempts, %d", spec.MaxAttempts))
	}
	positive("leaseDuration", spec.LeaseDuration)
	positive("gracePeriod", spec.GracePeriod)
	positive("duePollInterval", spec.DuePollInterval)
	positive("sweepInterval", spec.SweepInterval)
	return errors.Join(faults...)
}
