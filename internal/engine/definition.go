package engine

import (
	"encoding/json"

	"github.com/relayops/relayops/internal/jsontime"
)

// Definition is a pipeline's graph, in the JSON that users write.
type Definition struct {
	Nodes []Node `json:"nodes"`
	Edges []Edge `json:"edges"`
}

// Node is one step of a pipeline.
type Node struct {
	// ID is unique within the pipeline: a letter, then letters, digits, '_' or '-', at most 63 characters.
	ID string `json:"id"`
	// Type names a registered node type, such as http-request.
	Type string `json:"type"`
	// Config is the node type's configuration; its JSON Schema is the type's.
	Config json.RawMessage `json:"config,omitempty"`
	// OnError is "abort" (default), or "continue". An edge with branch "error" is the third choice.
	OnError string `json:"onError,omitempty"`
	// Timeout bounds this step instead of the pipeline's step timeout.
	Timeout jsontime.Duration `json:"timeout,omitempty"`
	// Classify overrides how failures of this node are classed; the first rule that matches counts.
	Classify []ClassRule `json:"classify,omitempty"`
}

// ClassRule gives a class to failures. At least one of HTTPStatus and Code is set; all that are set must match.
type ClassRule struct {
	// HTTPStatus is a status such as "404", or a hundred such as "5xx".
	HTTPStatus string `json:"httpStatus,omitempty"`
	// Code is a failure code, such as "timeout".
	Code Code `json:"code,omitempty"`
	// As is "retry", "dead_letter" or "cancel".
	As Class `json:"as"`
}

// Edge leads from a node to the next. Branch names the outcome on which it is taken: empty or "success" for a step
// that succeeded, "error" for one whose failure is final, or a branch of the node's type, such as "true".
type Edge struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Branch string `json:"branch,omitempty"`
}

// Values of Node.OnError and the branches that every node type has.
const (
	OnErrorAbort    = "abort"
	OnErrorContinue = "continue"
	BranchSuccess   = "success"
	BranchError     = "error"
)
