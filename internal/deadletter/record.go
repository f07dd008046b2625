package deadletter

import "github.com/relayops/relayops/internal/engine"

// Record is what a dead letter says. [New] and [FromFailure] make it; its code is always one of [Codes].
type Record struct {
	Code engine.Code
	// NodeID is the node that failed; empty where no node did.
	NodeID string
	// HTTPStatus is the last answer's status; 0 for none.
	HTTPStatus int
}

// codes are what a dead letter may say. Codes of a cancellation are not among them: cancelled is apart from the dead
// letters.
var codes = map[engine.Code]bool{
	engine.CodePermanentError:      true,
	engine.CodeTransientError:      true,
	engine.CodeMaxAttemptsExceeded: true,
	engine.CodePayloadConflict:     true,
	engine.CodeSchemaInvalid:       true,
	engine.CodePayloadExpired:      true,
	engine.CodePipelineTimeout:     true,
	engine.CodeRevisionMissing:     true,
	engine.CodeTimeout:             true,
	engine.CodeConnectionFailed:    true,
	engine.CodeHTTPStatus:          true,
	engine.CodeAddressRefused:      true,
	engine.CodeRedirectRefused:     true,
	engine.CodeResponseTooLarge:    true,
	engine.CodePlaceholderUnset:    true,
	engine.CodeExpressionFailed:    true,
	engine.CodeExpressionCost:      true,
	engine.CodeOutputTooLarge:      true,
	engine.CodeInvalidRequest:      true,
	engine.CodeEventRefused:        true,
	engine.CodePublishFailed:       true,
	engine.CodeNodePanicked:        true,
	engine.CodeNoBranch:            true,
}

// Codes lists the codes of dead letters, in no order.
func Codes() []engine.Code {
	all := make([]engine.Code, 0, len(codes))
	for code := range codes {
		all = append(all, code)
	}
	return all
}

// Known reports whether a dead letter may carry the code.
func Known(code engine.Code) bool { return codes[code] }

// New is a record of a failure that no node is to blame for.
func New(code engine.Code) Record { return Record{Code: closed(code)} }

// FromFailure is the record of a final failure. exhausted says that it was one to retry, and no attempt is left.
func FromFailure(failure *engine.Failure, exhausted bool) Record {
	record := Record{Code: closed(failure.Code), NodeID: failure.NodeID, HTTPStatus: failure.HTTPStatus}
	if exhausted {
		record.Code = engine.CodeMaxAttemptsExceeded
	}
	return record
}

// closed keeps the list closed: whatever text a code that is not of it would carry stays out of the record.
func closed(code engine.Code) engine.Code {
	if !codes[code] {
		return engine.CodePermanentError
	}
	return code
}
