package conditions

// Reasons of DatabaseReachable. Those of a False condition are reasons of Ready too.
const (
	// ReasonReachable means that the database answers, and its schema fits.
	ReasonReachable Reason = "Reachable"
	// ReasonStarting means that the daemon begins or ends, and has not looked. Wait.
	ReasonStarting Reason = "Starting"
	// ReasonNotReported means that the daemon told nothing of it. Look at the pods, and whether the operator reaches
	// their port.
	ReasonNotReported Reason = "NotReported"
	// ReasonDatabaseUnreachable means no answer. Look at the server, the network and the URL.
	ReasonDatabaseUnreachable Reason = "DatabaseUnreachable"
	// ReasonDatabaseUnauthorized means a refused password or a missing right. Correct the Secret, or grant it.
	ReasonDatabaseUnauthorized Reason = "DatabaseUnauthorized"
	// ReasonDatabaseReadOnly means a standby. Connect to the primary.
	ReasonDatabaseReadOnly Reason = "DatabaseReadOnly"
	// ReasonDatabaseFull means that its disk is full. Make room.
	ReasonDatabaseFull Reason = "DatabaseFull"
	// ReasonSchemaNotReady means that tables are missing or do not fit. Run relayops migrate up, or let the relay.
	ReasonSchemaNotReady Reason = "SchemaNotReady"
)

// Reasons of StreamReady. Those of a False condition are reasons of Ready too.
const (
	// ReasonUsable means that the stream, and of a Pipeline the consumer, are there and as they have to be.
	ReasonUsable Reason = "Usable"
	// ReasonBrokerUnreachable means no connection. Look at the server, the network and the URL.
	ReasonBrokerUnreachable Reason = "BrokerUnreachable"
	// ReasonBrokerUnauthorized means refused credentials or a missing permission. Correct the Secret, or allow it.
	ReasonBrokerUnauthorized Reason = "BrokerUnauthorized"
	// ReasonBrokerTooOld means a server whose version lacks what is needed. Update it.
	ReasonBrokerTooOld Reason = "BrokerTooOld"
	// ReasonBrokerBusy means too many requests. Wait; lower claimers or batchSize.
	ReasonBrokerBusy Reason = "BrokerBusy"
	// ReasonBrokerRefused means an answer that is not known. Read the message.
	ReasonBrokerRefused Reason = "BrokerRefused"
	// ReasonNoResponders means that JetStream does not answer: off, or without a leader.
	ReasonNoResponders Reason = "NoResponders"
	// ReasonPublishTimeout means no acknowledgement in time. Look at the broker's disk and load.
	ReasonPublishTimeout Reason = "PublishTimeout"
	// ReasonStreamMissing means that the stream is gone. The relay makes it anew; a worker waits for that.
	ReasonStreamMissing Reason = "StreamMissing"
	// ReasonStreamFull means that maxBytes is reached. Let pipelines catch up, or raise it.
	ReasonStreamFull Reason = "StreamFull"
	// ReasonStorageFull means that JetStream has no storage left. Free or raise it.
	ReasonStorageFull Reason = "StorageFull"
	// ReasonStreamConflict means another one's stream or subjects. Choose a name and a prefix of its own.
	ReasonStreamConflict Reason = "StreamConflict"
	// ReasonConsumerConflict means a consumer that cannot be made as it has to be. Remove it.
	ReasonConsumerConflict Reason = "ConsumerConflict"
	// ReasonConsumerOwnedByOther means a consumer of another pipeline. Give the relay an instance of its own.
	ReasonConsumerOwnedByOther Reason = "ConsumerOwnedByOther"
)
