package trace

import (
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// NotFoundError says that nothing is known of an event.
type NotFoundError struct {
	EventID uuid.UUID
	// OrgID that was asked for, empty for any.
	OrgID string
}

func (n *NotFoundError) Error() string {
	if n.OrgID != "" {
		return fmt.Sprintf("event %s of org %q: neither the outbox nor the ledger knows it", n.EventID, n.OrgID)
	}
	return fmt.Sprintf("event %s: neither the outbox nor the ledger knows it", n.EventID)
}

// AmbiguousError says that several organisations have an event of this id, which are different events.
type AmbiguousError struct {
	EventID uuid.UUID
	// OrgIDs, sorted.
	OrgIDs []string
}

func (a *AmbiguousError) Error() string {
	return fmt.Sprintf("event %s exists in %d organisations: name one of them: %s",
		a.EventID, len(a.OrgIDs), strings.Join(a.OrgIDs, ", "))
}
