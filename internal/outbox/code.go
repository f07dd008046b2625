package outbox

// Code says why an event could not be published, from a closed list. It is what the column last_error holds: never an
// error text.
type Code string

// The codes. docs/relay.md says what each means and what to do.
const (
	// CodeInvalidEvent: the row is no valid envelope.
	CodeInvalidEvent Code = "invalid_event"
	// CodeMessageTooLarge: the message exceeds the broker's or the stream's limit.
	CodeMessageTooLarge Code = "message_too_large"
	// CodeHeadersTooLarge: the message's headers exceed the broker's limit.
	CodeHeadersTooLarge Code = "headers_too_large"
	// CodeBadSubject: the broker's client refuses the subject.
	CodeBadSubject Code = "bad_subject"
	// CodeMessageIDTaken: the message id, and every id made from it, belongs to other messages.
	CodeMessageIDTaken Code = "message_id_taken"
	// CodeRefused: the broker refused this event for a reason that RelayOps does not know, and accepted others.
	CodeRefused Code = "refused_by_broker"
)

// Codes are all codes.
func Codes() []Code {
	return []Code{
		CodeInvalidEvent, CodeMessageTooLarge, CodeHeadersTooLarge, CodeBadSubject, CodeMessageIDTaken, CodeRefused,
	}
}
