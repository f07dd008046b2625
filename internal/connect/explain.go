package connect

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Advice is an error together with what to do about it.
type Advice struct {
	// Do is a sentence for whoever runs the daemon, without a final stop.
	Do string
	// Cause is the error itself.
	Cause error
}

func (a *Advice) Error() string { return a.Cause.Error() + " — " + a.Do }

func (a *Advice) Unwrap() error { return a.Cause }

// Explain adds advice to the errors that a wrong or unfinished set-up gives: refused password, missing database or
// schema, nothing listening, a taken port, JetStream off or without room. Other errors, and nil, come back as they are.
func Explain(err error) error {
	if err == nil {
		return nil
	}
	if _, advised := errors.AsType[*Advice](err); advised {
		return err
	}
	for _, advise := range []func(error) string{adviseDatabase, adviseBroker, adviseSystem} {
		if do := advise(err); do != "" {
			return &Advice{Do: do, Cause: err}
		}
	}
	return err
}

func adviseDatabase(err error) string {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return ""
	}
	user, database := "the user", "the database"
	var connecting *pgconn.ConnectError
	if errors.As(err, &connecting) && connecting.Config != nil {
		user, database = fmt.Sprintf("user %q", connecting.Config.User), fmt.Sprintf("%q", connecting.Config.Database)
	}
	switch refused.Code {
	case "28P01":
		return "PostgreSQL refused the password of " + user + ": correct it in the database URL, or in the Secret or " +
			"file that holds the URL"
	case "28000":
		return "PostgreSQL does not let " + user + " in from here: create the role, or allow it in pg_hba.conf"
	case "3D000":
		return "create the database " + database + " (createdb), or correct the name at the end of the database URL"
	case "3F000", "42P01", "42883":
		return "a table is not there or is older than this program: run `relayops migrate up`, or start with --migrate; " +
			"for an outbox table of your own, correct the table mapping"
	case "42501":
		return "grant " + user + " the right: USAGE on schema relayops, SELECT, INSERT and UPDATE on its tables"
	case "53300":
		return "PostgreSQL has no connection left: raise max_connections, lower maxConnections here, or use a pooler"
	case "53100":
		return "PostgreSQL's disk is full: make room there"
	case "57P03":
		return "PostgreSQL is starting up or shutting down: wait, nothing is wrong here"
	case "25006":
		return "this PostgreSQL is read-only, a standby perhaps: connect to the primary, or add " +
			"target_session_attrs=read-write to the database URL"
	default:
		return ""
	}
}

// Error codes of the JetStream API that nats.go has no constant for.
const (
	codeInsufficientResources jetstream.ErrorCode = 10023
	codeMemoryExceeded        jetstream.ErrorCode = 10028
	codeStorageExceeded       jetstream.ErrorCode = 10047
	codeStoreFailed           jetstream.ErrorCode = 10077
	codeReplicasUnsupported   jetstream.ErrorCode = 10074
	codeNoPeers               jetstream.ErrorCode = 10005
)

const (
	adviseStorage = "JetStream has less storage than the stream reserves: raise max_file_store in the NATS server's " +
		"configuration or free its disk, or lower the stream's maxBytes"
	adviseReplicas = "the stream asks for more replicas than NATS servers can hold it: set replicas to 1 for a single " +
		"server, or add servers"
)

var apiAdvice = map[jetstream.ErrorCode]string{
	codeStorageExceeded:       adviseStorage,
	codeMemoryExceeded:        adviseStorage,
	codeInsufficientResources: adviseStorage,
	codeStoreFailed:           "JetStream could not write: look whether the NATS server's disk is full",
	codeReplicasUnsupported:   adviseReplicas,
	codeNoPeers:               adviseReplicas,
}

func adviseBroker(err error) string {
	if api, isAPI := errors.AsType[*jetstream.APIError](err); isAPI && apiAdvice[api.ErrorCode] != "" {
		if strings.Contains(api.Description, "maximum") {
			return "the stream is full: let its pipelines catch up, raise the stream's maxBytes, or shorten its maxAge"
		}
		return apiAdvice[api.ErrorCode]
	}
	switch {
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, nats.ErrJetStreamNotEnabled):
		return "the NATS server runs without JetStream: start it with -js, or add a jetstream block to its configuration"
	case errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return "the NATS account has no JetStream: enable it for the account that these credentials belong to"
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked):
		return "the NATS server refused the credentials: correct the creds, user and password, or token file"
	case errors.Is(err, nats.ErrPermissionViolation):
		return "the NATS user lacks a permission: allow publish on the stream's subjects and $JS.API.>, and subscribe " +
			"on _INBOX.>"
	case errors.Is(err, nats.ErrNoServers):
		return "no NATS server answers: start one (nats-server -js), or correct the NATS URL"
	case errors.Is(err, nats.ErrNoResponders):
		return "no JetStream answers: the NATS server runs without it, has no leader yet, or the stream is missing"
	default:
		return ""
	}
}

func adviseSystem(err error) string {
	var lookup *net.DNSError
	var missing *fs.PathError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "the port is taken: stop the program that has it, or choose another address"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there: start the server, or correct host and port of the URL"
	case errors.Is(err, syscall.ENOSPC):
		return "the disk is full: make room"
	case errors.As(err, &lookup):
		return fmt.Sprintf("the host name %q is not known: correct the URL", lookup.Name)
	case errors.As(err, &missing) && errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("the file %s is missing: create the Secret or the key that it comes from", missing.Path)
	case errors.Is(err, fs.ErrPermission):
		return "this user may not: correct the file's owner or mode"
	default:
		return ""
	}
}

// redactURL hides passwords in a list of server URLs.
func redactURL(list string) string {
	parts := strings.Split(list, ",")
	for i, part := range parts {
		parsed, err := url.Parse(strings.TrimSpace(part))
		switch {
		case err != nil:
			parts[i] = "(not a URL)"
		case parsed.User != nil:
			parsed.User = url.User("xxxxx")
			parts[i] = parsed.String()
		}
	}
	return strings.Join(parts, ",")
}
