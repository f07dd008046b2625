package httprequest

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/relayops/relayops/internal/engine"
)

// keptHeaders are the response headers that an output has.
var keptHeaders = []string{"Content-Type", "Location", "Etag", "Last-Modified", "X-Request-Id", "X-Correlation-Id"}

const (
	maxKeptHeaderBytes = 1024
	// maxDrainBytes is how much of an unwanted body is read so that the connection can be used again.
	maxDrainBytes = 16 << 10
)

// output reads the response, and no more of it than is allowed.
func (r *runner) output(ctx context.Context, response *http.Response, maxBytes int64) (engine.Output, error) {
	value := map[string]any{"status": response.StatusCode, "headers": keptHeadersOf(response.Header), "body": nil}
	if !r.keepBody {
		drain(response)
		return engine.Output{Value: value, HTTPStatus: response.StatusCode}, nil
	}
	if maxBytes <= 0 {
		maxBytes = DefaultMaxResponseBytes
	}
	if response.ContentLength > maxBytes {
		return engine.Output{}, tooLarge(response, maxBytes)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBytes+1))
	if err != nil {
		failure := transportFailure(ctx, err)
		failure.HTTPStatus = response.StatusCode
		return engine.Output{}, failure
	}
	if int64(len(body)) > maxBytes {
		return engine.Output{}, tooLarge(response, maxBytes)
	}
	value["body"] = bodyValue(response.Header.Get("Content-Type"), body)
	return engine.Output{Value: value, HTTPStatus: response.StatusCode}, nil
}

func tooLarge(response *http.Response, maxBytes int64) error {
	failure := engine.Permanent(engine.CodeResponseTooLarge, fmt.Errorf("a response of more than %d bytes", maxBytes))
	failure.HTTPStatus = response.StatusCode
	return failure
}

// bodyValue is JSON where the media type says so and the text is, else a text; null for no body, and for one that is
// no text.
func bodyValue(contentType string, body []byte) any {
	if len(body) == 0 || !utf8.Valid(body) {
		return nil
	}
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err == nil && (mediaType == "application/json" || strings.HasSuffix(mediaType, "+json")) {
		if value, err := engine.DecodeJSON(body); err == nil {
			return value
		}
	}
	return string(body)
}

func keptHeadersOf(header http.Header) map[string]any {
	kept := make(map[string]any)
	for _, name := range keptHeaders {
		if value := header.Get(name); value != "" && len(value) <= maxKeptHeaderBytes {
			kept[strings.ToLower(name)] = value
		}
	}
	return kept
}

func drain(response *http.Response) {
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxDrainBytes))
}
