// Package deadletter says what is recorded of something that was given up: a code of a closed list and structured
// facts, and never an error's text, a body or a payload.
package deadletter
