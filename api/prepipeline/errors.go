package prepipeline

import (
	"fmt"
	"strings"

	"github.com/relayops/relayops/internal/engine"
)

// InvalidError lists every mistake of a pipeline's definition.
type InvalidError struct {
	// Pipeline is the name given to Compile.
	Pipeline string
	Faults   []Fault
}

// Fault is one mistake: where, what was found, what is allowed.
type Fault struct {
	// Node is the node's id; empty for a mistake of an edge or of the whole graph.
	Node string
	// Field is the path from the definition, such as nodes[2].config.url.
	Field          string
	Found, Allowed string
}

func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Faults))
	for i, fault := range e.Faults {
		lines[i] = "\n  " + engine.FieldError(fault).Error()
	}
	return fmt.Sprintf("pipeline %s is invalid:%s", e.Pipeline, strings.Join(lines, ""))
}

func invalid(pipeline string, mistakes engine.FieldErrors) *InvalidError {
	faults := make([]Fault, len(mistakes))
	for i, mistake := range mistakes {
		faults[i] = Fault(mistake)
	}
	return &InvalidError{Pipeline: pipeline, Faults: faults}
}

// Classes of a failure.
const (
	// ClassRetry: it may work later, such as a time-out or an HTTP status 503.
	ClassRetry = string(engine.ClassRetry)
	// ClassDeadLetter: it fails however often it is tried, such as an HTTP status 400.
	ClassDeadLetter = string(engine.ClassDeadLetter)
	// ClassCancel: the pipeline itself said that nothing is to be done.
	ClassCancel = string(engine.ClassCancel)
)

// FailureError is how a pipeline failed. Its text holds no body, payload or address; the cause, for a debug log, is
// what errors.Unwrap gives.
type FailureError struct {
	Pipeline string
	// Class is ClassRetry, ClassDeadLetter or ClassCancel.
	Class string
	// Code says why, from the closed list of docs/dead-letters.md, such as http_status.
	Code string
	// Node is the id of the node that failed; empty if the event itself could not be used.
	Node string
	// HTTPStatus of an http-request; 0 for none.
	HTTPStatus int

	cause error
}

func (e *FailureError) Error() string {
	text := "pipeline " + e.Pipeline + " failed"
	if e.Node != "" {
		text += " at node " + e.Node
	}
	text += fmt.Sprintf(": %s (%s)", e.Code, e.Class)
	if e.HTTPStatus != 0 {
		text += fmt.Sprintf(", HTTP status %d", e.HTTPStatus)
	}
	return text
}

func (e *FailureError) Unwrap() error { return e.cause }

func failed(pipeline string, failure *engine.Failure) *FailureError {
	return &FailureError{
		Pipeline: pipeline, Class: string(failure.Class), Code: string(failure.Code), Node: failure.NodeID,
		HTTPStatus: failure.HTTPStatus, cause: failure.Err,
	}
}
