// Package engine validates pipelines and runs them. It is pure: it knows the graph, the plan and the three outcomes,
// and neither database nor broker nor Kubernetes. What a step does is a node type's business (internal/node/...);
// what is recorded, and under which lease, is the Journal's.
//
// # A node's life
//
//	           some edge into it taken, all edges into it settled
//	waiting ────────────────────────────────────────────────────► ready ──► running
//	   │                                                                      │
//	   │ all edges into it dead                    ┌──────────────────────────┼───────────────────┐
//	   ▼                                           ▼                          ▼                   ▼
//	SKIPPED                                    SUCCEEDED               failed, final       failed, may be retried
//	(its edges die)                     edges of its branch are     onError continue:        or onError abort
//	                                    taken, the others die       CONTINUED, takes the          │
//	                                                                edges of "success";           ▼
//	                                                                an edge "error":       FAILED: the attempt ends,
//	                                                                FAILED, takes it       with the class of the failure
//
// A node with several edges into it is a join: it waits until each is settled (taken or dead) and runs if one was
// taken. Settling dead paths this way (dead-path elimination, WS-BPEL 2.0, section 11.6.2) means that no join waits
// for ever, and that the same outcomes give the same plan in whatever order branches finish.
//
// # Failures
//
// A step fails with a [Failure]: its class is retry, dead_letter or cancel, and nothing else exists. While attempts
// are left a retry ends the attempt, whatever onError says; onError decides what happens to a failure that is final.
// The next attempt begins with the steps that are recorded, and runs only the others.
package engine
