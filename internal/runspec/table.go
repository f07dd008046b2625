package runspec

import "github.com/relayops/relayops/api/outbox"

// Table maps the outbox to a table of the application. The zero value stands for relayops.outbox_events, which the
// migrations make.
type Table = outbox.Table
