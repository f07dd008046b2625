// Package httprequest is the node that calls an HTTP endpoint: at least once, always with an Idempotency-Key made of
// execution and node.
//
//	configuration ──► request (request.go, url.go)
//	                     │  dial: only addresses that the policy allows (address.go), no proxy, no redirect
//	                     ▼
//	                  response ──► output: status, some headers, body (response.go)
//	                     │
//	                     └──► failure: classified by status or by kind of error (classify.go)
package httprequest

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/node/config"
	"github.com/relayops/relayops/internal/placeholder"
)

const (
	// DefaultTimeout bounds a step whose node sets no timeout, from the first byte sent to the last received.
	DefaultTimeout = 10 * time.Second
	// DefaultMaxResponseBytes bounds a response's body where the run specification does not, in bytes (1 MiB).
	DefaultMaxResponseBytes = 1 << 20
	// MaxBodyBytes bounds a request's body, in bytes.
	MaxBodyBytes = event.MaxPayloadBytes
	// maxURLBytes and maxHeaderBytes bound the rendered URL, and each rendered header.
	maxURLBytes    = 8 << 10
	maxHeaderBytes = 8 << 10
)

//go:embed schema.json
var schema []byte

// Type is the node type http-request.
type Type struct{}

// Name implements engine.Type.
func (Type) Name() string { return "http-request" }

// Schema implements engine.Type.
func (Type) Schema() []byte { return schema }

// Effect implements engine.Type.
func (Type) Effect() engine.Effect { return engine.External }

// Compile implements engine.Type.
func (Type) Compile(raw json.RawMessage) (engine.Runner, error) {
	c := struct {
		Method   string            `json:"method"`
		URL      string            `json:"url"`
		Headers  map[string]string `json:"headers"`
		Query    json.RawMessage   `json:"query"`
		Body     json.RawMessage   `json:"body"`
		KeepBody bool              `json:"keepBody"`
	}{KeepBody: true}
	var read config.Reader
	read.Decode(raw, &c)
	r := &runner{method: methodOf(c.Method, len(c.Body) > 0), keepBody: c.KeepBody}
	r.url = compileURL(&read, c.URL)
	r.headers = read.Texts("headers", c.Headers)
	for name := range c.Headers {
		if reservedHeader(name) {
			read.Fault(engine.KeyField("headers", name), "a header that RelayOps or the connection sets", "another name")
		}
	}
	if len(c.Query) > 0 {
		r.query = read.Template("query", c.Query)
	}
	if len(c.Body) > 0 {
		r.body = read.Template("body", c.Body)
		if r.method == http.MethodGet || r.method == http.MethodHead {
			read.Fault("body", "a body in a "+r.method+" request", "POST, PUT, PATCH or DELETE with a body")
		}
	}
	r.Reads = read.Reads()
	return r, read.Err()
}

func methodOf(method string, hasBody bool) string {
	switch {
	case method != "":
		return method
	case hasBody:
		return http.MethodPost
	default:
		return http.MethodGet
	}
}

type runner struct {
	config.Reads
	method   string
	url      *urlTemplate
	headers  []config.NamedText
	query    *placeholder.Template
	body     *placeholder.Template
	keepBody bool
}

// Branches implements engine.Runner.
func (r *runner) Branches() []string { return nil }

// DefaultTimeout implements engine.TimeLimited.
func (r *runner) DefaultTimeout() time.Duration { return DefaultTimeout }

// Run implements engine.Runner.
func (r *runner) Run(ctx context.Context, call *engine.Call) (engine.Output, error) {
	if call.Services.HTTP == nil {
		return engine.Output{}, engine.Permanent(engine.CodePermanentError, errors.New("there is no HTTP client here"))
	}
	request, err := r.request(ctx, call)
	if err != nil {
		return engine.Output{}, err
	}
	response, err := call.Services.HTTP.Do(request)
	if err != nil {
		return engine.Output{}, transportFailure(ctx, err)
	}
	defer func() { _ = response.Body.Close() }()
	if failure := statusFailure(response, call.Now); failure != nil {
		drain(response)
		return engine.Output{}, failure
	}
	return r.output(ctx, response, call.Services.MaxResponseBytes)
}
