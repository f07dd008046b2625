package httprequest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/node/tracing"
)

// HeaderIdempotencyKey carries execution and node, the same in every attempt
// (draft-ietf-httpapi-idempotency-key-header).
const HeaderIdempotencyKey = "Idempotency-Key"

// reserved are headers that a configuration cannot set: those that frame the message or belong to one connection
// (RFC 9110, section 7.6.1), and those that are RelayOps' own.
var reserved = []string{
	"host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade", "expect",
	"idempotency-key", "traceparent", "tracestate",
}

func reservedHeader(name string) bool {
	lower := strings.ToLower(name)
	return slices.Contains(reserved, lower) || strings.HasPrefix(lower, "proxy-")
}

func (r *runner) request(ctx context.Context, call *engine.Call) (*http.Request, error) {
	target, err := r.url.render(call.Data)
	if err != nil {
		return nil, err
	}
	if err := r.addQuery(target, call.Data); err != nil {
		return nil, err
	}
	body, contentType, err := r.renderBody(call.Data)
	if err != nil {
		return nil, err
	}
	var reader io.Reader // Stays nil, and not a nil *bytes.Reader, without a body.
	if body != nil {
		reader = bytes.NewReader(body)
	}
	request, err := http.NewRequestWithContext(ctx, r.method, target.String(), reader)
	if err != nil {
		return nil, invalid(err)
	}
	request.Header.Set("User-Agent", "RelayOps")
	request.Header.Set("Accept", "application/json, */*;q=0.8")
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	for _, header := range r.headers {
		value, err := header.Text.Fill(call.Data, maxHeaderBytes)
		if err != nil {
			return nil, err
		}
		if hasControl(value) {
			return nil, invalid(fmt.Errorf("header %s with a control character", header.Name))
		}
		request.Header.Set(header.Name, value)
	}
	for name, value := range tracing.Headers(ctx, call) {
		request.Header.Set(name, value)
	}
	request.Header.Set(HeaderIdempotencyKey, call.IdempotencyKey())
	return request, nil
}

// renderBody gives the body and its media type: a text is sent as it is, everything else as JSON.
func (r *runner) renderBody(data map[string]any) ([]byte, string, error) {
	if r.body == nil {
		return nil, "", nil
	}
	value, err := r.body.Render(data, MaxBodyBytes)
	if err != nil {
		return nil, "", err
	}
	if text, isText := value.(string); isText {
		return []byte(text), "text/plain; charset=utf-8", nil
	}
	body, err := engine.MarshalJSON(value, MaxBodyBytes)
	if errors.Is(err, engine.ErrTooLarge) {
		return nil, "", engine.Permanent(engine.CodeOutputTooLarge, err)
	}
	return body, "application/json", err
}

// addQuery adds the configuration's query: lists repeat their parameter, null leaves it out.
func (r *runner) addQuery(target *url.URL, data map[string]any) error {
	if r.query == nil {
		return nil
	}
	rendered, err := r.query.Render(data, maxURLBytes)
	if err != nil {
		return err
	}
	fields, _ := rendered.(map[string]any) // The schema says that it is an object.
	values := url.Values{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		elements, isList := fields[name].([]any)
		if !isList {
			elements = []any{fields[name]}
		}
		for _, element := range elements {
			if element == nil {
				continue
			}
			text, err := scalar(element)
			if err != nil {
				return invalid(fmt.Errorf("query parameter %s: %w", name, err))
			}
			values.Add(name, text)
		}
	}
	if encoded := values.Encode(); encoded != "" {
		target.RawQuery = strings.TrimPrefix(target.RawQuery+"&"+encoded, "&")
	}
	if len(target.RawQuery) > maxURLBytes {
		return invalid(fmt.Errorf("a query of %d bytes, more than %d", len(target.RawQuery), maxURLBytes))
	}
	return nil
}

func scalar(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case json.Number:
		return string(v), nil
	case bool:
		return fmt.Sprint(v), nil
	default:
		return "", errors.New("a value that is no text, number or bool")
	}
}

// hasControl finds what would end a header or smuggle another in; a tab is allowed.
func hasControl(value string) bool {
	return strings.ContainsFunc(value, func(r rune) bool { return r < 0x20 && r != '\t' || r == 0x7f })
}

func invalid(err error) error { return engine.Permanent(engine.CodeInvalidRequest, err) }
