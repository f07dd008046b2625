package prepipeline

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/api/outbox"
	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/node"
	"github.com/relayops/relayops/internal/node/httprequest"
	"github.com/relayops/relayops/internal/node/publish"
	"github.com/relayops/relayops/internal/runspec"
)

const (
	defaultStepTimeout      = 10 * time.Second
	defaultMaxResponseBytes = 1 << 20
	parallelism             = 4
)

// Pipeline is a pipeline that was validated. Any number of goroutines may run it.
type Pipeline struct {
	name        string
	graph       *engine.Graph
	client      *http.Client
	maxResponse int64
	stepTimeout time.Duration
	writer      *outbox.Writer
	now         func() time.Time
}

type settings struct {
	http        runspec.HTTPPolicy
	stepTimeout time.Duration
	table       outbox.Table
	now         func() time.Time
}

// Option changes a [Pipeline].
type Option func(*settings)

// WithAllowedCIDRs lets http-request nodes reach these ranges, such as "10.0.0.0/8", beside public addresses.
func WithAllowedCIDRs(ranges ...string) Option {
	return func(s *settings) { s.http.AllowedCIDRs = append(s.http.AllowedCIDRs, ranges...) }
}

// WithMaxResponseBytes bounds the body of an HTTP response, in bytes; 1 MiB by default.
func WithMaxResponseBytes(limit int64) Option {
	return func(s *settings) { s.http.MaxResponseBytes = limit }
}

// WithStepTimeout bounds each step that has no timeout of its own; 10 s by default.
func WithStepTimeout(timeout time.Duration) Option {
	return func(s *settings) { s.stepTimeout = timeout }
}

// WithTable writes events to a mapped outbox table.
func WithTable(table outbox.Table) Option { return func(s *settings) { s.table = table } }

// WithClock sets the clock that events and status tags get their time from; time.Now by default.
func WithClock(now func() time.Time) Option { return func(s *settings) { s.now = now } }

// Compile validates a pipeline's JSON ({"nodes": […], "edges": […]}) and prepares it. name identifies it in
// idempotency keys and errors, such as order.pre. Every mistake of the definition is in an [InvalidError].
func Compile(name string, definition []byte, options ...Option) (*Pipeline, error) {
	s := settings{stepTimeout: defaultStepTimeout, now: time.Now}
	s.http.MaxResponseBytes = defaultMaxResponseBytes
	for _, option := range options {
		option(&s)
	}
	parsed, err := engine.ParseDefinition(definition)
	if err != nil {
		return nil, fmt.Errorf("pipeline %s: %w", name, err)
	}
	graph, err := compile(name, parsed)
	if err != nil {
		return nil, err
	}
	client, err := httprequest.NewClient(s.http)
	if err != nil {
		return nil, fmt.Errorf("pipeline %s: %w", name, err)
	}
	writer, err := outbox.NewWriter(outbox.WithTable(s.table))
	if err != nil {
		return nil, fmt.Errorf("pipeline %s: %w", name, err)
	}
	return &Pipeline{
		name: name, graph: graph, client: client, maxResponse: s.http.MaxResponseBytes, stepTimeout: s.stepTimeout,
		writer: writer, now: s.now,
	}, nil
}

func compile(name string, definition engine.Definition) (*engine.Graph, error) {
	var mistakes engine.FieldErrors
	for i, n := range definition.Nodes {
		if n.Type == (publish.Type{}).Name() {
			mistakes = append(mistakes, engine.FieldError{
				Node: n.ID, Field: fmt.Sprintf("nodes[%d].type", i), Found: "publish in a pre-processing pipeline, whose " +
					"message would be out although the transaction may roll back",
				Allowed: "emit-event, which publishes after the commit",
			})
		}
	}
	graph, err := engine.Compile(definition, node.Types())
	var more engine.FieldErrors
	switch {
	case errors.As(err, &more):
		mistakes = append(mistakes, more...)
	case err != nil:
		return nil, fmt.Errorf("pipeline %s: %w", name, err)
	}
	if len(mistakes) > 0 {
		return nil, invalid(name, mistakes)
	}
	return graph, nil
}

// executions is the name space of execution ids: the same event in the same pipeline is the same execution, so that a
// request that is tried again sends the same idempotency keys and emits the same events.
var executions = uuid.MustParse("6f0c1f0e-7f4e-5d0b-9a0e-0d6c5f2b7a11")

// Evaluate runs the pipeline on an event, which is only read, and gives what came of it. It writes nothing: the caller
// writes Result.Events in the transaction that stores the rest.
//
// Errors: [event.ValidationError] for the event; [FailureError] when the pipeline failed, with a Result that has its
// steps and tags, and no events; the context's error when it ended first.
func (p *Pipeline) Evaluate(ctx context.Context, cause event.Envelope) (Result, error) {
	if err := cause.Validate(); err != nil {
		return Result{}, err
	}
	journal := &journal{}
	execution := engine.Execution{
		ID:          uuid.NewSHA1(executions, []byte(cause.OrgID+"\x00"+p.name+"\x00"+cause.ID.String())),
		PipelineKey: p.name, Event: cause, OperationVersion: 1, Attempt: 1, MaxAttempts: 1,
	}
	outcome, err := p.graph.Run(ctx, execution, engine.Runtime{
		Journal: journal, Now: p.now, StepTimeout: p.stepTimeout, Parallelism: parallelism,
		Services: engine.Services{HTTP: p.client, MaxResponseBytes: p.maxResponse},
	})
	result := newResult(execution.ID, append(journal.steps, outcome.Pending...))
	switch {
	case err != nil:
		result.Events = nil
		return result, fmt.Errorf("pipeline %s: %w", p.name, err)
	case outcome.Failure != nil:
		result.Events = nil
		return result, failed(p.name, outcome.Failure)
	default:
		return result, nil
	}
}

// Run is [Pipeline.Evaluate], and writes the events in the caller's transaction. An event that is there already with
// another payload is an [outbox.ConflictError]. After any error the transaction should be rolled back.
func (p *Pipeline) Run(ctx context.Context, tx pgx.Tx, cause event.Envelope) (Result, error) {
	result, err := p.Evaluate(ctx, cause)
	if err == nil {
		err = p.writer.Write(ctx, tx, result.Events...)
	}
	return result, err
}

// RunSQL is [Pipeline.Run] in a transaction of database/sql.
func (p *Pipeline) RunSQL(ctx context.Context, tx *sql.Tx, cause event.Envelope) (Result, error) {
	result, err := p.Evaluate(ctx, cause)
	if err == nil {
		err = p.writer.WriteSQL(ctx, tx, result.Events...)
	}
	return result, err
}

// journal keeps steps in memory: one attempt, which nobody resumes.
type journal struct{ steps []engine.Step }

// Commit implements engine.Journal.
func (j *journal) Commit(_ context.Context, steps []engine.Step) error {
	j.steps = append(j.steps, steps...)
	return nil
}
