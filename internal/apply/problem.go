package apply

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/relayops/relayops/internal/conditions"
)

// ProblemOf takes an error of [Applier.Apply] or [Applier.Prune] for what a condition says of a child. The error that
// is left is one that only trying again can help: a conflict, or an API server that did not answer.
func ProblemOf(err error) (*conditions.ChildProblem, error) {
	if foreign, ok := errors.AsType[*OwnedByOtherError](err); ok {
		return &conditions.ChildProblem{
			Object: foreign.Object, Kind: conditions.ChildOwnedByOther, Message: foreign.owner(),
		}, nil
	}
	var child *ChildError
	if !errors.As(err, &child) {
		return nil, err
	}
	kind := conditions.ChildRefused
	switch reason := child.Err; {
	case errors.Is(reason, ErrBeingCollected), apierrors.IsForbidden(reason), apierrors.IsMethodNotSupported(reason):
	case apierrors.IsInvalid(reason), apierrors.IsBadRequest(reason), apierrors.IsRequestEntityTooLargeError(reason):
		kind = conditions.ChildInvalid
	case apierrors.IsConflict(reason), apierrors.IsAlreadyExists(reason):
		return nil, err
	default:
		if !isAnswer(reason) {
			return nil, err
		}
	}
	return &conditions.ChildProblem{Object: child.Object, Kind: kind, Message: child.Err.Error()}, nil
}

// isAnswer: the API server, or a webhook of it, looked at the object and said no. A failing webhook is among them
// (500), for it may fail as long as somebody does not repair it.
func isAnswer(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) {
		return false
	}
	return status.Status().Code >= 400
}
