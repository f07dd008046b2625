package runspec

import "github.com/relayops/relayops/internal/jsontime"

// Duration is written as Go writes it, such as "2s".
type Duration = jsontime.Duration
