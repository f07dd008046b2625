package conditions

import "strings"

// part is what a daemon's reason is about.
type part int

const (
	// partNone: the daemon itself.
	partNone part = iota
	partDatabase
	partStream
)

// repair is who makes it good.
type repair int

const (
	// repairPasses: it passes by itself, or with something else that does.
	repairPasses repair = iota
	// repairLater: it passes by itself while Secrets are rotated, servers fail over and migrations run. What lasts
	// longer is a user's to repair.
	repairLater
	// repairUser: only a user can repair it.
	repairUser
)

// daemonReason is what the reason of a daemon means here.
type daemonReason struct {
	reason Reason
	part   part
	repair repair
	// message is said where the daemon says nothing itself.
	message string
}

// daemonReasons are the reasons of relays and workers, as their status has them. A test holds them against both lists.
var daemonReasons = map[string]daemonReason{
	"DatabaseUnreachable":  {ReasonDatabaseUnreachable, partDatabase, repairPasses, "the database does not answer"},
	"DatabaseUnauthorized": {ReasonDatabaseUnauthorized, partDatabase, repairLater, "the database refuses the user"},
	"DatabaseReadOnly":     {ReasonDatabaseReadOnly, partDatabase, repairLater, "the database is read-only"},
	"DatabaseFull":         {ReasonDatabaseFull, partDatabase, repairLater, "the database's disk is full"},
	"SchemaNotReady":       {ReasonSchemaNotReady, partDatabase, repairLater, "the schema is missing or does not fit"},

	"BrokerUnreachable":    {ReasonBrokerUnreachable, partStream, repairPasses, "the broker does not answer"},
	"BrokerUnauthorized":   {ReasonBrokerUnauthorized, partStream, repairLater, "the broker refuses the credentials"},
	"Unauthorized":         {ReasonBrokerUnauthorized, partStream, repairLater, "the broker refuses the credentials"},
	"BrokerTooOld":         {ReasonBrokerTooOld, partStream, repairUser, "the broker is too old"},
	"BrokerBusy":           {ReasonBrokerBusy, partStream, repairPasses, "the broker has too many requests"},
	"BrokerRefused":        {ReasonBrokerRefused, partStream, repairLater, "the broker refuses what it is asked"},
	"NoResponders":         {ReasonNoResponders, partStream, repairPasses, "JetStream does not answer"},
	"PublishTimeout":       {ReasonPublishTimeout, partStream, repairPasses, "the broker acknowledges nothing in time"},
	"StreamMissing":        {ReasonStreamMissing, partStream, repairPasses, "the stream is missing"},
	"StreamFull":           {ReasonStreamFull, partStream, repairPasses, "the stream is full"},
	"StorageFull":          {ReasonStorageFull, partStream, repairLater, "JetStream has no storage left"},
	"StreamConflict":       {ReasonStreamConflict, partStream, repairUser, "the stream is another one's"},
	"ConsumerConflict":     {ReasonConsumerConflict, partStream, repairUser, "the consumer cannot be made to fit"},
	"ConsumerOwnedByOther": {ReasonConsumerOwnedByOther, partStream, repairUser, "the consumer is another pipeline's"},

	"InternalError": {ReasonInternalError, partNone, repairPasses, "the daemon met a fault of its own"},
}

// States of a daemon that are told apart here.
const (
	daemonPaused   = "Paused"
	daemonDraining = "Draining"
)

// problem is what keeps the daemon from working; nil: nothing, or nothing is known.
func (d Daemon) problem() *daemonReason {
	if !d.Answered || d.settling() || d.State != daemonPaused {
		return nil
	}
	found, known := daemonReasons[d.Reason]
	if !known {
		found = daemonReason{reason: ReasonPaused, part: partNone, repair: repairPasses}
		d.Message = strings.TrimSuffix(d.Reason+": "+d.Message, ": ")
	}
	if d.Message != "" {
		found.message = steady(d.Message)
	}
	return &found
}

// settling: the daemon begins or ends, and does not speak for its resource.
func (d Daemon) settling() bool {
	return d.State == daemonDraining || d.State == daemonPaused && d.Reason == string(ReasonStarting)
}
