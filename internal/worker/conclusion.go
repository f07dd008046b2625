package worker

import (
	"errors"
	"time"

	"github.com/relayops/relayops/internal/deadletter"
	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/execution"
)

// Causes that end a run before its plan does.
var (
	errStopping        = errors.New("the worker stops")
	errPipelineTimeout = errors.New("pipeline timeout")
	errBrokerAway      = errors.New("broker away")
)

// verdict is what is to be recorded at the end of an attempt.
type verdict struct {
	// to is the state; empty: nothing may be recorded, the lease is lost.
	to execution.State
	// giveBack: the attempt is not counted.
	giveBack bool
	code     engine.Code
	record   deadletter.Record
	// retryAfter is what the other side asked for, before a Retry that counts; delay is the wait of a hand-back.
	retryAfter, delay time.Duration
}

// awayDelay is how long an execution waits that could not go on without the broker.
const awayDelay = 5 * time.Second

// conclude makes the verdict about an attempt. err is what engine.Run returned; exhausted says that no attempt is left.
func conclude(result engine.Result, err error, exhausted bool) verdict {
	if err != nil {
		return concludeCut(err)
	}
	switch result.Outcome {
	case engine.Succeeded:
		return verdict{to: execution.Succeeded}
	case engine.HandedBack:
		return handBack(0)
	default:
		return concludeFailure(result.Failure, exhausted)
	}
}

// concludeCut is about a run that did not come to its own end.
func concludeCut(err error) verdict {
	var failure *engine.Failure
	switch {
	case errors.Is(err, execution.ErrLeaseLost):
		return verdict{}
	case errors.Is(err, errPipelineTimeout):
		return deadLetter(deadletter.New(engine.CodePipelineTimeout))
	case errors.Is(err, errBrokerAway):
		return handBack(awayDelay)
	case errors.As(err, &failure):
		return concludeFailure(failure, true)
	default: // The worker stops, or the database is away.
		return handBack(0)
	}
}

func concludeFailure(failure *engine.Failure, exhausted bool) verdict {
	switch {
	case failure.Class == engine.ClassCancel:
		return verdict{to: execution.Cancelled, code: recorded(failure.Code, engine.CodeCancelledByPipeline)}
	case failure.Class == engine.ClassRetry && !exhausted:
		code := recorded(failure.Code, engine.CodeTransientError)
		return verdict{to: execution.Retry, code: code, retryAfter: failure.RetryAfter}
	default:
		return deadLetter(deadletter.FromFailure(failure, failure.Class == engine.ClassRetry))
	}
}

// recorded keeps the list of codes closed: one that is not of it becomes the other.
func recorded(code, other engine.Code) engine.Code {
	if !deadletter.Known(code) {
		return other
	}
	return code
}

func handBack(delay time.Duration) verdict {
	return verdict{to: execution.Retry, giveBack: true, delay: delay}
}

func deadLetter(record deadletter.Record) verdict {
	return verdict{to: execution.DeadLettered, code: record.Code, record: record}
}
