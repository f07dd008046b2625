package stream

import (
	"fmt"
	"strings"
)

// Metadata keys that mark an object's owner.
const (
	// MetadataInstance marks a stream with the relay's instance key.
	MetadataInstance = "relayops.io/instance"
	// MetadataPipeline marks a consumer with its pipeline key.
	MetadataPipeline = "relayops.io/pipeline"
)

// Applied is what an Ensure function did.
type Applied string

// What an Ensure function can have done.
const (
	Unchanged Applied = "Unchanged"
	Created   Applied = "Created"
	Updated   Applied = "Updated"
	// Adopted: it existed without an owner's mark, was compatible, and is marked now.
	Adopted Applied = "Adopted"
)

// Outcome reports what was done, for the caller to log.
type Outcome struct {
	Applied Applied
	// Changes are the fields that were repaired; none for Created and Unchanged.
	Changes []FieldChange
}

// FieldChange is one field that was not as wanted. Field is the JetStream API's name for it.
type FieldChange struct{ Field, Found, Wanted string }

func (c FieldChange) String() string {
	return fmt.Sprintf("%s: found %s, wanted %s", c.Field, c.Found, c.Wanted)
}

// OwnedByOtherError says that the stream or consumer belongs to somebody else.
type OwnedByOtherError struct {
	// Object is "stream NAME" or "consumer NAME of stream NAME".
	Object string
	// Owner is the mark found, Wanted our own.
	Owner, Wanted string
}

func (e *OwnedByOtherError) Error() string {
	return fmt.Sprintf("%s belongs to %q, not to %q: choose another name, or delete it if it is left over",
		e.Object, e.Owner, e.Wanted)
}

// ConflictError names the fields that cannot be brought to what is wanted: the broker does not change them, or doing
// so would drop messages of a stream that is not ours.
type ConflictError struct {
	Object string
	Fields []FieldChange
	// Unmarked: the object carries no owner's mark, so it is taken over only as it is.
	Unmarked bool
}

func (e *ConflictError) Error() string {
	why := "which the broker cannot change"
	if e.Unmarked {
		why = "and it is not marked as RelayOps' own, so it is left alone"
	}
	fields := make([]string, len(e.Fields))
	for i, field := range e.Fields {
		fields[i] = field.String()
	}
	return fmt.Sprintf("%s differs from what is wanted, %s (%s): change the specification, or choose another name",
		e.Object, why, strings.Join(fields, "; "))
}

// OverlapError says that another stream has the subjects.
type OverlapError struct{ Stream, Subject, Other string }

func (e *OverlapError) Error() string {
	return fmt.Sprintf("stream %s cannot be made: its subject %s overlaps with stream %q; choose another subjectPrefix, "+
		"or take the subject from that stream", e.Stream, e.Subject, e.Other)
}

// VersionError says that the broker is too old.
type VersionError struct{ Found, Least string }

func (e *VersionError) Error() string {
	return fmt.Sprintf("nats-server: found version %s, allowed: %s or later (filter subjects and metadata of consumers)",
		e.Found, e.Least)
}
