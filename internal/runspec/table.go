package runspec

// Table maps the outbox to a table. The zero value stands for relayops.outbox_events, which the migrations make.
type Table struct {
	// Schema and Name of an existing table; both empty: relayops.outbox_events.
	Schema string `json:"schema,omitempty"`
	Name   string `json:"name,omitempty"`
	// Columns gives the table's own name for a column of relayops.outbox_events, such as "event_id": "id" or
	// "org_id": "orgId". A column that is not listed has its standard name; a column mapped to "" does not exist
	// there, which is allowed for the optional ones (see internal/outbox).
	Columns map[string]string `json:"columns,omitempty"`
}

// Mapped reports whether the outbox is an existing table of the application.
func (t Table) Mapped() bool { return t.Name != "" }
