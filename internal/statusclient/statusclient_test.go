package statusclient

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relayops/relayops/internal/conditions"
)

type answering func(*http.Request) (*http.Response, error)

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

func client(code int, body string) *Client {
	return &Client{
		HTTP: HTTPClient(answering(func(r *http.Request) (*http.Response, error) {
			if r.URL.String() != "http://orders-relay.shop.svc:8080/status" || r.Header.Get("Authorization") != "Bearer for shop/orders" {
				return nil, errors.New("a call to another place: " + r.URL.String())
			}
			return &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader(body))}, nil
		})),
		Token: func(audience string) (string, error) { return "for " + audience, nil },
	}
}

var target = Target{Kind: "OutboxRelay", Namespace: "shop", Name: "orders"}

func TestAsk(t *testing.T) {
	told, err := client(http.StatusOK, `{"state": "Paused", "reason": "StreamFull", "message": "full", "pending": 3}`).Ask(t.Context(), target)
	if want := (conditions.Daemon{Answered: true, State: "Paused", Reason: "StreamFull", Message: "full"}); err != nil || told != want {
		t.Errorf("found %+v, %v, want %+v", told, err, want)
	}
	for _, one := range []struct {
		code int
		body string
	}{
		{http.StatusUnauthorized, "no"}, {http.StatusInternalServerError, ""}, {http.StatusOK, "not JSON"},
		{http.StatusOK, "{}"}, {http.StatusFound, ""}, {http.StatusOK, `{"state": "` + strings.Repeat("x", maxAnswer) + `"}`},
	} {
		if told, err := client(one.code, one.body).Ask(t.Context(), target); err == nil || told.Answered {
			t.Errorf("%d %.20q: found %+v, want an error", one.code, one.body, told)
		}
	}
}

// A daemon is asked again and again, its last answer stands for a minute of silence, and only what means something new
// is told.
func TestPoller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls, changes atomic.Int64
		var failing atomic.Bool
		state := atomic.Pointer[conditions.Daemon]{}
		state.Store(&conditions.Daemon{Answered: true, State: "Running"})
		p := NewPoller(func(context.Context, Target) (conditions.Daemon, error) {
			calls.Add(1)
			if failing.Load() {
				return conditions.Daemon{}, errors.New("the connection is refused")
			}
			return *state.Load(), nil
		}, func(Target) { changes.Add(1) })
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Start(ctx) }()

		if told := p.Latest(target, "1"); told != (conditions.Daemon{}) {
			t.Errorf("before any answer: found %+v", told)
		}
		time.Sleep(time.Second)
		if told := p.Latest(target, "1"); told.State != "Running" || changes.Load() != 1 {
			t.Errorf("after one call: found %+v, %d changes", told, changes.Load())
		}
		time.Sleep(10 * time.Minute)
		if n := calls.Load(); n < 15 || n > 30 || changes.Load() != 1 {
			t.Errorf("in ten steady minutes: %d calls and %d changes, want one in half a minute and no change", n, changes.Load())
		}
		before := calls.Load()
		p.Latest(target, "2")
		time.Sleep(time.Second)
		if calls.Load() != before+1 {
			t.Errorf("another epoch: %d calls, want one at once", calls.Load()-before)
		}
		failing.Store(true)
		time.Sleep(50 * time.Second)
		if told := p.Latest(target, "2"); told.State != "Running" {
			t.Errorf("a silence of less than a minute: found %+v", told)
		}
		time.Sleep(time.Minute)
		if told := p.Latest(target, "2"); told.Answered || told.Problem != "the connection is refused" || changes.Load() != 2 {
			t.Errorf("a longer silence: found %+v, %d changes", told, changes.Load())
		}
		p.Forget(target)
		before = calls.Load()
		time.Sleep(10 * time.Minute)
		if calls.Load() > before {
			t.Errorf("forgotten: %d calls more", calls.Load()-before)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
