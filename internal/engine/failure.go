package engine

import (
	"fmt"
	"slices"
	"time"
)

// Class is what becomes of a failed attempt. There are three, and nothing else exists.
type Class string

// The classes.
const (
	ClassRetry      Class = "retry"
	ClassDeadLetter Class = "dead_letter"
	ClassCancel     Class = "cancel"
)

// Code says why, from a closed list. It is the only text of a failure that is recorded: never an error's own text, a
// body or a payload.
type Code string

// The codes. docs/dead-letters.md says what each means and what to do.
const (
	CodePermanentError      Code = "permanent_error"
	CodeTransientError      Code = "transient_error"
	CodeMaxAttemptsExceeded Code = "max_attempts_exceeded"
	CodePayloadConflict     Code = "payload_conflict"
	CodeSchemaInvalid       Code = "schema_invalid"
	CodePayloadExpired      Code = "payload_expired"
	CodeDeadlineExceeded    Code = "deadline_exceeded"
	CodePipelineTimeout     Code = "pipeline_timeout"
	CodeRevisionMissing     Code = "revision_missing"
	CodeTimeout             Code = "timeout"
	CodeConnectionFailed    Code = "connection_failed"
	CodeHTTPStatus          Code = "http_status"
	CodeAddressRefused      Code = "address_refused"
	CodeRedirectRefused     Code = "redirect_refused"
	CodeResponseTooLarge    Code = "response_too_large"
	CodePlaceholderUnset    Code = "placeholder_unset"
	CodeExpressionFailed    Code = "expression_failed"
	CodeExpressionCost      Code = "expression_cost_exceeded"
	CodeOutputTooLarge      Code = "output_too_large"
	CodeInvalidRequest      Code = "invalid_request"
	CodeEventRefused        Code = "event_refused"
	CodePublishFailed       Code = "publish_failed"
	CodeNodePanicked        Code = "node_panicked"
	CodeCancelledByPipeline Code = "cancelled_by_pipeline"
	CodeNoBranch            Code = "no_branch"
)

// stepCodes are the codes that a step can fail with, and so those that Node.Classify can name.
var stepCodes = []Code{
	CodePermanentError, CodeTransientError, CodeTimeout, CodeConnectionFailed, CodeHTTPStatus, CodeAddressRefused,
	CodeRedirectRefused, CodeResponseTooLarge, CodePlaceholderUnset, CodeExpressionFailed, CodeExpressionCost,
	CodeOutputTooLarge, CodeInvalidRequest, CodeEventRefused, CodePublishFailed, CodeNodePanicked, CodeNoBranch,
}

// executionCodes are the others: why an execution ended that no step failed.
var executionCodes = []Code{
	CodeMaxAttemptsExceeded, CodePayloadConflict, CodeSchemaInvalid, CodePayloadExpired, CodeDeadlineExceeded,
	CodePipelineTimeout, CodeRevisionMissing, CodeCancelledByPipeline,
}

// Codes is the whole closed list.
func Codes() []Code { return slices.Concat(stepCodes, executionCodes) }

// Failure is how a step, or a whole attempt, failed. Only its structured fields are ever recorded; Err is for debug
// logs.
type Failure struct {
	Class      Class
	Code       Code
	NodeID     string
	HTTPStatus int
	// RetryAfter is the least time before the next attempt that the other side asked for; 0: none.
	RetryAfter time.Duration
	Err        error
}

func (f *Failure) Error() string {
	text := fmt.Sprintf("%s (%s)", f.Code, f.Class)
	if f.NodeID != "" {
		text = "node " + f.NodeID + ": " + text
	}
	if f.HTTPStatus != 0 {
		text = fmt.Sprintf("%s, HTTP status %d", text, f.HTTPStatus)
	}
	if f.Err != nil {
		text += ": " + f.Err.Error()
	}
	return text
}

func (f *Failure) Unwrap() error { return f.Err }

// Transient makes a failure of class retry, Permanent one of class dead_letter.
func Transient(code Code, err error) *Failure {
	return &Failure{Class: ClassRetry, Code: code, Err: err}
}

// Permanent makes a failure of class dead_letter.
func Permanent(code Code, err error) *Failure {
	return &Failure{Class: ClassDeadLetter, Code: code, Err: err}
}
