package relay

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// errPanicked is all that the status tells of a panic.
var errPanicked = errors.New("the relay panicked: its log has the stack")

// contained makes an error of a panic. The panic's value may hold a row's content, so only its type is logged above
// debug level.
func (r *Relay) contained(consequence string, fault any) error {
	r.log.Error("relay panicked; "+consequence, "type", fmt.Sprintf("%T", fault), "stack", string(debug.Stack()))
	r.log.Debug("relay panicked", "panic", fmt.Sprint(fault))
	return errPanicked
}
