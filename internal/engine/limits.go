package engine

import "time"

// Limits of a definition and of what its steps give.
const (
	// MaxNodes and MaxEdges bound a graph.
	MaxNodes = 256
	MaxEdges = 1024
	// MaxDefinitionBytes bounds a definition's JSON text, MaxConfigBytes one node's config, both in bytes.
	MaxDefinitionBytes = 1 << 20
	MaxConfigBytes     = 64 << 10
	// MaxConfigDepth bounds how deep a config's objects and arrays nest.
	MaxConfigDepth = 32
	// MaxClassRules bounds Node.Classify.
	MaxClassRules = 32
	// MinTimeout and MaxTimeout bound Node.Timeout.
	MinTimeout = time.Millisecond
	MaxTimeout = time.Hour
	// MaxOutputBytes bounds a step's output as JSON, in bytes; more is a failure with CodeOutputTooLarge.
	MaxOutputBytes = 256 << 10
	// maxOutputDepth bounds how deep an output nests: PostgreSQL's jsonb parser has a stack to guard.
	maxOutputDepth = 256
	// maxNumberDigits bounds how many digits a number has when it is written out without an exponent: jsonb stores
	// it like that, and refuses what is longer than 131072 digits before, or 16383 after the point.
	maxNumberDigits = 1000
)
