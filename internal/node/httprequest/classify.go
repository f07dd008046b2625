package httprequest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/relayops/relayops/internal/engine"
)

// maxRetryAfter bounds how long a server can put the next attempt off.
const maxRetryAfter = time.Hour

// statusFailure classifies a status: 2xx is none; 408, 425, 429 and 5xx may pass; everything else is final.
func statusFailure(response *http.Response, now time.Time) *engine.Failure {
	status := response.StatusCode
	var failure *engine.Failure
	switch {
	case status >= 200 && status <= 299:
		return nil
	case status >= 300 && status <= 399 && response.Header.Get("Location") != "":
		failure = engine.Permanent(engine.CodeRedirectRefused, errors.New("redirects are not followed"))
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests,
		status >= 500:
		failure = engine.Transient(engine.CodeHTTPStatus, fmt.Errorf("HTTP status %d", status))
		failure.RetryAfter = retryAfter(response.Header.Get("Retry-After"), now)
	default:
		failure = engine.Permanent(engine.CodeHTTPStatus, fmt.Errorf("HTTP status %d", status))
	}
	failure.HTTPStatus = status
	return failure
}

// retryAfter reads the header, a number of seconds or an HTTP date (RFC 9110, section 10.2.3), as a wait from now; 0
// for none, and for one that cannot be read.
func retryAfter(header string, now time.Time) time.Duration {
	var wait time.Duration
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(header); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), maxRetryAfter)
}

// transportFailure classifies an error of the connection.
func transportFailure(ctx context.Context, err error) *engine.Failure {
	var network net.Error
	switch {
	case errors.Is(err, ErrAddressRefused):
		return engine.Permanent(engine.CodeAddressRefused, err)
	case ctx.Err() != nil, errors.As(err, &network) && network.Timeout():
		return engine.Transient(engine.CodeTimeout, err)
	default:
		return engine.Transient(engine.CodeConnectionFailed, err)
	}
}
