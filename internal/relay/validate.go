package relay

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/relayops/relayops/internal/runspec"
)

// leaseMargin is how long before the end of its claim's lease a batch stops publishing, so that the rows are marked in
// time: a quarter of the lease, at most a second.
func leaseMargin(lease time.Duration) time.Duration { return min(time.Second, lease/4) }

// validate names every field of the specification that a relay cannot work with.
func validate(spec *runspec.Relay) error {
	var faults []error
	check := func(ok bool, field string, found any, allowed string) {
		if !ok {
			faults = append(faults, fmt.Errorf("%s: found %v, allowed: %s", field, found, allowed))
		}
	}
	check(spec.Key != "", "key", "nothing", "<instance>/<namespace>/<name>")
	check(spec.Stream.Name != "" && !strings.ContainsAny(spec.Stream.Name, " \t.*>/\\"), "stream.name",
		fmt.Sprintf("%q", spec.Stream.Name), `a name without white space and without . * > / \`)
	check(validPrefix(spec.Stream.SubjectPrefix), "stream.subjectPrefix", fmt.Sprintf("%q", spec.Stream.SubjectPrefix),
		"tokens separated by '.', without white space, '*' and '>', not beginning with '$'")
	check(spec.Stream.InstanceKey != "", "stream.instanceKey", "nothing", "the relay's instance")
	check(spec.Stream.Replicas >= 1 && spec.Stream.Replicas <= 5, "stream.replicas", spec.Stream.Replicas, "1 to 5")
	check(spec.PollInterval >= runspec.Duration(10*time.Millisecond), "pollInterval", spec.PollInterval, "10ms or more")
	check(spec.BatchSize >= 1 && spec.BatchSize <= 10_000, "batchSize", spec.BatchSize, "1 to 10000")
	check(spec.Claimers >= 1 && spec.Claimers <= 16, "claimers", spec.Claimers, "1 to 16")
	check(spec.MaxAttempts >= 1 && spec.MaxAttempts <= 1000, "maxAttempts", spec.MaxAttempts, "1 to 1000")
	check(spec.PublishTimeout > 0, "publishTimeout", spec.PublishTimeout, "more than 0")
	check(spec.ClaimLease > spec.PublishTimeout && spec.ClaimLease >= runspec.Duration(100*time.Millisecond), "claimLease",
		spec.ClaimLease, fmt.Sprintf("100ms or more, and more than the publish timeout (%s)", spec.PublishTimeout))
	least := spec.ClaimLease + spec.PublishTimeout + spec.PollInterval
	check(spec.Stream.DuplicateWindow > least, "stream.duplicateWindow", spec.Stream.DuplicateWindow, fmt.Sprintf(
		"more than claim lease + publish timeout + poll interval (%s)", least))
	check(spec.Stream.MaxAge == 0 || spec.Stream.MaxAge >= spec.Stream.DuplicateWindow, "stream.maxAge",
		spec.Stream.MaxAge, fmt.Sprintf("0 for no limit, or at least the duplicate window (%s)", spec.Stream.DuplicateWindow))
	check(spec.MaxInlinePayloadBytes >= 0, "maxInlinePayloadBytes", spec.MaxInlinePayloadBytes, "0 or more")
	check(spec.BackOff.Initial > 0 && spec.BackOff.Max >= spec.BackOff.Initial, "backOff",
		fmt.Sprintf("initial %s, max %s", spec.BackOff.Initial, spec.BackOff.Max), "0 < initial ≤ max")
	check(spec.BackOff.Multiplier >= 1, "backOff.multiplier", spec.BackOff.Multiplier, "1 or more")
	check(spec.BackOff.Jitter >= 0 && spec.BackOff.Jitter <= 1, "backOff.jitter", spec.BackOff.Jitter, "0 to 1")
	return errors.Join(faults...)
}

func validPrefix(prefix string) bool {
	if prefix == "" || strings.HasPrefix(prefix, "$") || strings.ContainsAny(prefix, " \t\r\n*>") {
		return false
	}
	for token := range strings.SplitSeq(prefix, ".") {
		if token == "" {
			return false
		}
	}
	return true
}
