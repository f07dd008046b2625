package statusclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/relayops/relayops/api/v1alpha1"
	"github.com/relayops/relayops/internal/conditions"
	"github.com/relayops/relayops/internal/naming"
)

const (
	// callTimeout bounds one call, from the connection to the end of the answer.
	callTimeout = 3 * time.Second
	// maxAnswer bounds an answer, in bytes.
	maxAnswer = 64 << 10
)

// Target is a relay or worker to ask.
type Target struct {
	// Kind, Namespace and Name are those of its OutboxRelay or Pipeline.
	Kind, Namespace, Name string
}

// service is the name of the Service that leads to it.
func (t Target) service() string {
	if t.Kind == v1alpha1.KindPipeline {
		return naming.Worker(t.Name)
	}
	return naming.Relay(t.Name)
}

func (t Target) url() string {
	return "http://" + naming.ServiceHost(t.Namespace, t.service()) + ":" + strconv.Itoa(naming.Port) + "/status"
}

// Client asks for one status.
type Client struct {
	// HTTP makes the calls.
	HTTP *http.Client
	// Token signs a token for an audience.
	Token func(audience string) (string, error)
}

// HTTPClient is what calls are made with: no proxy, no redirects, and no connections that are kept, for pods come and
// go. A nil transport is the network.
func HTTPClient(transport http.RoundTripper) *http.Client {
	if transport == nil {
		transport = &http.Transport{
			DialContext:       (&net.Dialer{Timeout: callTimeout}).DialContext,
			DisableKeepAlives: true, MaxResponseHeaderBytes: 16 << 10,
		}
	}
	return &http.Client{
		Transport:     transport,
		Timeout:       callTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Ask gives what the daemon tells of itself. The error says, in words that are the same as long as the cause is, why it
// told nothing.
func (c *Client) Ask(ctx context.Context, target Target) (conditions.Daemon, error) {
	token, err := c.Token(naming.StatusAudience(target.Namespace, target.Name))
	if err != nil {
		return conditions.Daemon{}, fmt.Errorf("sign a token: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.url(), http.NoBody)
	if err != nil {
		return conditions.Daemon{}, fmt.Errorf("ask %s: %w", target.url(), err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := c.HTTP.Do(request)
	if err != nil {
		return conditions.Daemon{}, explain(err)
	}
	defer func() { _ = response.Body.Close() }() // It was only read.
	return answer(response)
}

func answer(response *http.Response) (conditions.Daemon, error) {
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden:
		return conditions.Daemon{}, fmt.Errorf("it refuses the operator's token (%d): its pods may know an older key",
			response.StatusCode)
	default:
		return conditions.Daemon{}, fmt.Errorf("it answers %d", response.StatusCode)
	}
	var told struct {
		State   string `json:"state"`
		Reason  string `json:"reason"`
		Message string `json:"message"`
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&told); err != nil {
		if netErr := net.Error(nil); errors.As(err, &netErr) {
			return conditions.Daemon{}, explain(err)
		}
		return conditions.Daemon{}, errors.New("its answer is not the JSON of a status")
	}
	if told.State == "" {
		return conditions.Daemon{}, errors.New("its answer has no state")
	}
	return conditions.Daemon{Answered: true, State: told.State, Reason: told.Reason, Message: told.Message}, nil
}

// explain leaves out addresses and ports, which change from call to call.
func explain(err error) error {
	var dns *net.DNSError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return errors.New("its Service has no address yet")
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("the connection is refused")
	case errors.Is(err, context.Canceled):
		return errors.New("the operator stops")
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("nothing came within %s", callTimeout)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return errors.New("the connection ended before an answer came")
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return errors.New("there is no route to it")
	default:
		return errors.New("the call failed")
	}
}
