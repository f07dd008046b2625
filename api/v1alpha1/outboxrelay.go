package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OutboxRelay publishes the events of one transactional outbox to one JetStream stream.
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=relayops,shortName=obr
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Stream",type=string,JSONPath=`.spec.stream.name`
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.status.replicas`
// +kubebuilder:printcolumn:name="Suspended",type=boolean,JSONPath=`.spec.suspend`
// +kubebuilder:printcolumn:name="Instance",type=string,JSONPath=`.spec.instance`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="found a name of more than 63 characters; allowed: at most 63, so that it fits a label"
type OutboxRelay struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is wanted.
	// +required
	Spec OutboxRelaySpec `json:"spec,omitzero"`
	// status is what the operator found.
	// +optional
	// +default={"conditions":[{"type":"Ready","status":"Unknown","reason":"Pending","message":"the operator has not looked at it yet","lastTransitionTime":"1970-01-01T00:00:00Z"}]}
	Status OutboxRelayStatus `json:"status,omitzero"`
}

// OutboxRelayList is a list of OutboxRelays.
// +kubebuilder:object:root=true
type OutboxRelayList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OutboxRelay `json:"items"`
}

// OutboxRelaySpec is what is wanted of a relay.
// +kubebuilder:validation:XValidation:rule="has(self.table) == has(oldSelf.table) && (!has(self.table) || self.table == oldSelf.table)",message="table is immutable; allowed: what it was, or another OutboxRelay",fieldPath=".table"
// +kubebuilder:validation:XValidation:rule="duration(self.publishTimeout) + duration('1s') <= duration(self.claimLease)",messageExpression="'found ' + self.publishTimeout + ' beside a claimLease of ' + self.claimLease + '; allowed: at least 1s shorter than claimLease, so that a batch never outlives its claim'",fieldPath=".publishTimeout"
// +kubebuilder:validation:XValidation:rule="self.database.maxConnections > self.claimers",message="found no more connections than claimers; allowed: more than claimers, since each holds one",fieldPath=".database.maxConnections"
// +kubebuilder:validation:XValidation:rule="duration(self.stream.duplicateWindow) > duration(self.claimLease) + duration(self.publishTimeout) + duration(self.pollInterval)",messageExpression="'found ' + self.stream.duplicateWindow + '; allowed: longer than claimLease + publishTimeout + pollInterval, ' + self.claimLease + ' + ' + self.publishTimeout + ' + ' + self.pollInterval",fieldPath=".stream.duplicateWindow"
// +kubebuilder:validation:XValidation:rule="quantity(string(self.stream.maxMessageBytes)).compareTo(quantity(string(self.maxInlinePayloadBytes)).add(65536)) >= 0",message="found less than maxInlinePayloadBytes + 64Ki; allowed: at least that, since an event's headers travel beside its payload",fieldPath=".stream.maxMessageBytes"
type OutboxRelaySpec struct {
	// instance tells this installation from others that share its database or its broker. It is the first part of
	// the key of this relay and of its pipelines, <instance>/<namespace>/<name>, and of what they own in database
	// and broker. Set it where two clusters share one of them. Immutable.
	// +optional
	// +default="default"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="instance is immutable; allowed: what it was, or another OutboxRelay"
	Instance string `json:"instance,omitempty"`
	// database is the PostgreSQL database of the outbox and of the ledger.
	// +required
	Database DatabaseConnection `json:"database,omitzero"`
	// nats is the broker.
	// +required
	NATS NATSConnection `json:"nats,omitzero"`
	// table maps the outbox to an existing table of the application. Without it, the outbox is
	// relayops.outbox_events, which the migrations make. Immutable.
	// +optional
	Table *TableMapping `json:"table,omitempty"`
	// triggers maps event types to triggers. A type T that is not listed has the trigger event.T.
	// +optional
	// +default={"OrderConfirmed":"order.post"}
	// +kubebuilder:validation:MaxProperties=256
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.matches('^[A-Za-z][A-Za-z0-9._-]{0,127}$'))",messageExpression="'found the event type ' + self.filter(t, !t.matches('^[A-Za-z][A-Za-z0-9._-]{0,127}$'))[0] + '; allowed: a letter, then letters, digits, dot, _ or -, at most 128'"
	Triggers map[string]TriggerName `json:"triggers,omitempty"`
	// stream is the JetStream stream that events are published to.
	// +optional
	// +default={}
	Stream StreamSpec `json:"stream,omitzero"`
	// pollInterval is the longest time that a committed event waits when no wake-up reaches the relay, from 50ms to
	// 10m. An idle relay sends one query in each.
	// +optional
	// +default="2s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('50ms') && duration(self) <= duration('10m')",messageExpression="'found ' + self + '; allowed: from 50ms to 10m'"
	PollInterval Duration `json:"pollInterval,omitempty"`
	// batchSize is the most rows of one claim. A claim costs the same few round trips whatever its size, and its
	// publishes overlap: that is why it is 500 here and not 50, the default of OUTBOX_BATCH_SIZE for relays that are
	// set up by environment variables.
	// +optional
	// +default=500
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	BatchSize int32 `json:"batchSize,omitempty"`
	// claimers is how many claims one relay has in flight, each on a database connection of its own.
	// +optional
	// +default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	Claimers int32 `json:"claimers,omitempty"`
	// claimLease bounds the life of one claim, from 2s to 10m: the database ends it then, whatever became of the
	// relay.
	// +optional
	// +default="30s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('2s') && duration(self) <= duration('10m')",messageExpression="'found ' + self + '; allowed: from 2s to 10m'"
	ClaimLease Duration `json:"claimLease,omitempty"`
	// publishTimeout bounds one publish, from sending to the broker's acknowledgement, from 100ms to 5m. It is at
	// least 1s shorter than claimLease: the time to mark what was published.
	// +optional
	// +default="5s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('100ms') && duration(self) <= duration('5m')",messageExpression="'found ' + self + '; allowed: from 100ms to 5m'"
	PublishTimeout Duration `json:"publishTimeout,omitempty"`
	// maxAttempts is how many failures of an event itself (too large, refused by the broker) make its row FAILED.
	// An outage of broker or database counts for none.
	// +optional
	// +default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxAttempts int32 `json:"maxAttempts,omitempty"`
	// backOff is how long a row waits after such a failure.
	// +optional
	// +default={}
	BackOff BackOff `json:"backOff,omitzero"`
	// ordering of the events of one aggregate. None, the only value, publishes events as they become due: mostly in
	// the order of their commits, without a promise.
	// +optional
	// +default="None"
	Ordering Ordering `json:"ordering,omitempty"`
	// allowAllOrgs permits pipelines that name no organisation and so get the events of all.
	// +optional
	// +default=false
	AllowAllOrgs *bool `json:"allowAllOrgs,omitempty"`
	// maxInlinePayloadBytes is the largest payload, in bytes, that travels in its message, up to 8Mi. A larger one
	// stays in the outbox and is read from there by the worker.
	// +optional
	// +default="512Ki"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isInteger() && quantity(string(self)).compareTo(quantity('0')) >= 0 && quantity(string(self)).compareTo(quantity('8Mi')) <= 0",messageExpression="'found ' + string(self) + '; allowed: from 0 to 8Mi'"
	MaxInlinePayloadBytes *resource.Quantity `json:"maxInlinePayloadBytes,omitempty"`
	// cloudEvents adds the headers of CloudEvents 1.0, binary mode, to each message.
	// +optional
	// +default=false
	CloudEvents *bool `json:"cloudEvents,omitempty"`
	// deletionPolicy says what becomes of the stream when this resource is deleted. Keep leaves it, with every
	// message in it. Delete removes it, and its messages with it; where that is not done within five minutes, or
	// cannot be, the resource goes all the same, and an Event says what was left. The outbox is kept either way.
	// +optional
	// +default="Keep"
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
	// suspend stops publishing: events stay in the outbox until it is false again.
	// +optional
	// +default=false
	Suspend *bool `json:"suspend,omitempty"`
	// replicas is how many relays run. They share the outbox without a leader.
	// +optional
	// +default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Replicas *int32 `json:"replicas,omitempty"`
	// podTemplate is what can be chosen of the relays' pods.
	// +optional
	PodTemplate *PodTemplate `json:"podTemplate,omitempty"`
}

// DatabaseConnection is a PostgreSQL database, version 13 or later.
// +kubebuilder:validation:XValidation:rule="!(has(self.listenUrlSecretRef) && has(self.disableListen) && self.disableListen)",message="found listenUrlSecretRef beside disableListen; allowed: one of them",fieldPath=".disableListen"
type DatabaseConnection struct {
	// urlSecretRef is where the connection URL is, such as postgres://user:password@host:5432/name?sslmode=verify-full.
	// +required
	URLSecretRef SecretKeyRef `json:"urlSecretRef,omitzero"`
	// listenUrlSecretRef is a URL that reaches the server itself, for LISTEN, where the other one goes through
	// PgBouncer in transaction mode.
	// +optional
	ListenURLSecretRef *SecretKeyRef `json:"listenUrlSecretRef,omitempty"`
	// maxConnections bounds the connections of each relay and of each worker, 2 to 1000.
	// +optional
	// +default=10
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=1000
	MaxConnections int32 `json:"maxConnections,omitempty"`
	// disableListen relies on polling alone: for PgBouncer in transaction mode where there is no listenUrlSecretRef.
	// +optional
	// +default=false
	DisableListen *bool `json:"disableListen,omitempty"`
	// migrations says who brings the schema relayops up to date. Auto: the relay does when it starts, which takes a
	// user that may create schemas and tables. External: somebody else does, with "relayops migrate up"; until then
	// the relay is not ready, reason SchemaNotReady.
	// +optional
	// +default="Auto"
	Migrations Migrations `json:"migrations,omitempty"`
}

// Migrations says who brings the database's schema up to date.
// +kubebuilder:validation:Enum=Auto;External
type Migrations string

// Who migrates.
const (
	MigrationsAuto     Migrations = "Auto"
	MigrationsExternal Migrations = "External"
)

// NATSConnection is a NATS server or cluster with JetStream.
// +kubebuilder:validation:XValidation:rule="has(self.userSecretRef) == has(self.passwordSecretRef)",message="found one of userSecretRef and passwordSecretRef; allowed: both or none",fieldPath=".userSecretRef"
// +kubebuilder:validation:XValidation:rule="[has(self.credsSecretRef), has(self.userSecretRef) || has(self.passwordSecretRef), has(self.tokenSecretRef)].filter(set, set).size() <= 1",message="found several kinds of credentials; allowed: one of credsSecretRef, userSecretRef with passwordSecretRef, and tokenSecretRef"
type NATSConnection struct {
	// url is one or more servers, separated by commas, such as nats://nats.nats.svc:4222. Credentials do not belong
	// in it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^(nats|tls|ws|wss)://[^\s,@/]+(,(nats|tls|ws|wss)://[^\s,@/]+)*$`
	URL string `json:"url,omitempty"`
	// credsSecretRef is a NATS credentials file (JWT and NKey seed).
	// +optional
	CredsSecretRef *SecretKeyRef `json:"credsSecretRef,omitempty"`
	// userSecretRef is a user's name, beside passwordSecretRef.
	// +optional
	UserSecretRef *SecretKeyRef `json:"userSecretRef,omitempty"`
	// passwordSecretRef is the user's password.
	// +optional
	PasswordSecretRef *SecretKeyRef `json:"passwordSecretRef,omitempty"`
	// tokenSecretRef is an authorisation token.
	// +optional
	TokenSecretRef *SecretKeyRef `json:"tokenSecretRef,omitempty"`
	// tls is the client's side of TLS.
	// +optional
	TLS *NATSTLS `json:"tls,omitempty"`
}

// NATSTLS is what a client needs for TLS beyond the system's roots.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="has(self.certSecretRef) == has(self.keySecretRef)",message="found one of certSecretRef and keySecretRef; allowed: both or none",fieldPath=".certSecretRef"
type NATSTLS struct {
	// caSecretRef is the authority that signed the servers' certificates, in PEM.
	// +optional
	CASecretRef *SecretKeyRef `json:"caSecretRef,omitempty"`
	// certSecretRef is the client's certificate, in PEM.
	// +optional
	CertSecretRef *SecretKeyRef `json:"certSecretRef,omitempty"`
	// keySecretRef is the client's key, in PEM.
	// +optional
	KeySecretRef *SecretKeyRef `json:"keySecretRef,omitempty"`
}

// TableMapping names an existing table and its columns.
type TableMapping struct {
	// schema of the table.
	// +optional
	// +default="public"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Schema string `json:"schema,omitempty"`
	// name of the table.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`
	// columns gives the table's own name for a column of relayops.outbox_events, such as event_id: id or
	// org_id: orgId. A column that is not listed has its standard name; one that is given the empty name does not
	// exist there, which the optional ones may.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(c, c in ['position', 'event_id', 'org_id', 'event_type', 'event_version', 'aggregate_type', 'aggregate_id', 'correlation_id', 'causation_id', 'payload', 'payload_sha256', 'headers', 'occurred_at', 'created_at', 'status', 'available_at', 'attempts', 'operation_version', 'last_error', 'published_at', 'stream', 'stream_seq'])",message="found a key that is no column of relayops.outbox_events; allowed: position, event_id, org_id, event_type, event_version, aggregate_type, aggregate_id, correlation_id, causation_id, payload, payload_sha256, headers, occurred_at, created_at, status, available_at, attempts, operation_version, last_error, published_at, stream, stream_seq"
	// +kubebuilder:validation:XValidation:rule="['event_id', 'org_id', 'event_type', 'payload', 'occurred_at', 'status', 'available_at', 'attempts'].all(c, !(c in self) || self[c] != '')",message="found an empty name for a required column; allowed: the table's names for event_id, org_id, event_type, payload, occurred_at, status, available_at and attempts"
	Columns map[string]ColumnName `json:"columns,omitempty"`
}

// ColumnName is the name of a column, in its own case and without quotes.
// +kubebuilder:validation:MaxLength=63
type ColumnName string

// TriggerName is what a Pipeline runs on, such as order.post or event.InvoicePaid.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=134
// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9._-]*$`
type TriggerName string

// StreamSpec is the JetStream stream of a relay. It has limits retention and file storage, and refuses new messages
// when it is full.
// +kubebuilder:validation:XValidation:rule="!has(self.duplicateWindow) || !has(self.maxAge) || duration(self.duplicateWindow) <= duration(self.maxAge)",messageExpression="'found ' + self.duplicateWindow + ' beside a maxAge of ' + self.maxAge + '; allowed: at most maxAge'",fieldPath=".duplicateWindow"
type StreamSpec struct {
	// name of the stream.
	// +optional
	// +default="RELAYOPS"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]+$`
	Name string `json:"name,omitempty"`
	// subjectPrefix is the first token, or tokens, of every subject: <subjectPrefix>.<organisation>.<event type>.
	// +optional
	// +default="events"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`
	SubjectPrefix string `json:"subjectPrefix,omitempty"`
	// replicas of the stream within the NATS cluster, 1 to 5.
	// +optional
	// +default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5
	Replicas int32 `json:"replicas,omitempty"`
	// maxBytes bounds the stream, from 1Mi.
	// +optional
	// +default="10Gi"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isInteger() && quantity(string(self)).compareTo(quantity('1Mi')) >= 0 && quantity(string(self)).compareTo(quantity('1Pi')) <= 0",messageExpression="'found ' + string(self) + '; allowed: from 1Mi to 1Pi'"
	MaxBytes *resource.Quantity `json:"maxBytes,omitempty"`
	// maxAge bounds the age of a message, from 1m to 10000h.
	// +optional
	// +default="168h"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('10000h')",messageExpression="'found ' + self + '; allowed: from 1m to 10000h'"
	MaxAge Duration `json:"maxAge,omitempty"`
	// duplicateWindow is how long the broker remembers message ids, from 1s to 24h. It is longer than claimLease +
	// publishTimeout + pollInterval, so that what is published twice because a relay died is stored once.
	// +optional
	// +default="10m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('24h')",messageExpression="'found ' + self + '; allowed: from 1s to 24h'"
	DuplicateWindow Duration `json:"duplicateWindow,omitempty"`
	// maxMessageBytes bounds one message, headers and payload, from 64Ki to 64Mi. The broker's own max_payload (1Mi
	// unless it is configured) has to allow it.
	// +optional
	// +default="1Mi"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isInteger() && quantity(string(self)).compareTo(quantity('64Ki')) >= 0 && quantity(string(self)).compareTo(quantity('64Mi')) <= 0",messageExpression="'found ' + string(self) + '; allowed: from 64Ki to 64Mi'"
	MaxMessageBytes *resource.Quantity `json:"maxMessageBytes,omitempty"`
}

// Ordering of the events of one aggregate.
// +kubebuilder:validation:Enum=None
type Ordering string

// OrderingNone promises no order.
const OrderingNone Ordering = "None"

// DeletionPolicy says what becomes of objects outside the cluster when their resource is deleted.
// +kubebuilder:validation:Enum=Keep;Delete
type DeletionPolicy string

// The deletion policies.
const (
	DeletionPolicyKeep   DeletionPolicy = "Keep"
	DeletionPolicyDelete DeletionPolicy = "Delete"
)

// OutboxRelayStatus is what the operator found. It changes when its meaning does; live counters are metrics.
type OutboxRelayStatus struct {
	// conditions are Ready, Reconciling and Stalled, as kstatus reads them, and what they are made of. The first is
	// there from the beginning, so that a resource which the operator has not seen is not taken for ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation that the status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// replicas is how many relays run.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`
	// selector finds their pods, for the scale subresource.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Selector string `json:"selector,omitempty"`
	// key is what the relay is called in database and broker: instance, namespace and name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}
