package deadletter

import (
	"testing"

	"github.com/relayops/relayops/internal/engine"
)

// Guarantee 5: a dead letter's code is one of the list, whatever the failure says.
func TestDeadLetterCodesAreClosed(t *testing.T) {
	failure := &engine.Failure{Class: engine.ClassDeadLetter, Code: "password=hunter2", NodeID: "n", HTTPStatus: 500}
	want := Record{Code: engine.CodePermanentError, NodeID: "n", HTTPStatus: 500}
	equal(t, "unknown code", FromFailure(failure, false), want)
	equal(t, "exhausted", FromFailure(failure, true).Code, engine.CodeMaxAttemptsExceeded)
	equal(t, "a cancellation's code", New(engine.CodeDeadlineExceeded).Code, engine.CodePermanentError)
	for _, code := range Codes() {
		equal(t, "code", New(code).Code, code)
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
