// Package crashpoint marks the places where a process test kills the real binary. In a normal build Here does
// nothing and is inlined away. Built with the tag crashpoints, it sends SIGKILL to its own process at the place that
// RELAYOPS_CRASH_AT names: "after_claim", or "after_claim:3" for the third time it is passed.
package crashpoint

// The places. The relay passes the first four, the worker the last three.
const (
	// AfterClaim: rows are locked and read, nothing is published.
	AfterClaim = "after_claim"
	// AfterPublishBeforeMark: the broker acknowledged, the rows still say PENDING.
	AfterPublishBeforeMark = "after_publish_before_mark"
	// BeforeClaimCommit: the rows are marked in the claim's transaction, which is not committed.
	BeforeClaimCommit = "before_claim_commit"
	// AfterMark: the claim's transaction is committed.
	AfterMark = "after_mark"
	// AfterStepBeforeCommit: a step ran, its record is not written.
	AfterStepBeforeCommit = "after_step_before_commit"
	// AfterCommitBeforeAck: the execution's end is committed, the message not acknowledged.
	AfterCommitBeforeAck = "after_commit_before_ack"
	// AfterDeadLetterBeforeTerm: the dead letter is committed, the message not terminated.
	AfterDeadLetterBeforeTerm = "after_dead_letter_before_term"
)
