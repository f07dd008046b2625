package httprequest

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/node/nodetest"
	"github.com/relayops/relayops/internal/runspec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// loopback is the policy of a demo: its stub is on this machine.
var loopback = runspec.HTTPPolicy{AllowedCIDRs: []string{"127.0.0.0/8", "::1/128"}}

func client(t *testing.T, policy runspec.HTTPPolicy) *http.Client {
	t.Helper()
	c, err := NewClient(policy)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

// call runs a node with a config in which URL stands for the server's.
func call(t *testing.T, server *httptest.Server, config string, change ...func(*nodetest.Case)) (engine.Step, *engine.Failure) {
	t.Helper()
	c := nodetest.Case{
		Type: Type{}, Config: strings.ReplaceAll(config, "URL", server.URL), Timeout: 5 * time.Second,
		Payload:  `{"orderNumber": "A-1", "order": {"totalAmount": 12.50}, "lines": "a\r\nX-Evil: 1", "list": [1, "b c"], "text": "plain", "none": null}`,
		Services: engine.Services{HTTP: client(t, loopback)},
	}
	for _, f := range change {
		f(&c)
	}
	return nodetest.Run(t, c)
}

type seen struct {
	method, url, body string
	header            http.Header
}

// echo is a server that keeps what it was asked.
func echo(t *testing.T) (*httptest.Server, *seen) {
	got := &seen{}
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*got = seen{r.Method, r.URL.String(), string(body), r.Header}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("X-Request-Id", "r-1")
		w.Header().Set("Set-Cookie", "secret=1")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"id": 12345678901234567890}`))
	}), got
}

func TestRequest(t *testing.T) {
	tests := []struct{ name, config, method, url, contentType, body string }{
		{"the order platform's", `{"method": "POST", "url": "URL/orders", "body": {"number": "{{orderNumber}}", "total": "{{order.totalAmount}}"}}`,
			"POST", "/orders", "application/json", `{"number":"A-1","total":12.50}`},
		{"GET is the default", `{"url": "URL/a"}`, "GET", "/a", "", ""},
		{"POST is the default with a body", `{"url": "URL/a", "body": {}}`, "POST", "/a", "application/json", "{}"},
		{"a text", `{"method": "PUT", "url": "URL", "body": "n={{orderNumber}}"}`, "PUT", "/", "text/plain; charset=utf-8", "n=A-1"},
		{"a text of another type", `{"method": "PUT", "url": "URL", "headers": {"content-type": "text/xml"}, "body": "<n>{{orderNumber}}</n>"}`,
			"PUT", "/", "text/xml", "<n>A-1</n>"},
		{"a lone object", `{"method": "PATCH", "url": "URL", "body": "{{order}}"}`, "PATCH", "/", "application/json", `{"totalAmount":12.50}`},
		{"null", `{"method": "POST", "url": "URL", "body": null}`, "POST", "/", "application/json", `null`},
		{"a query", `{"method": "DELETE", "url": "URL/a?x=1", "query": {"n": "{{orderNumber}} &", "l": "{{list}}", "b": true, "no": "{{none}}", "i": 5}}`,
			"DELETE", "/a?x=1&b=true&i=5&l=1&l=b+c&n=A-1+%26", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server, got := echo(t)
			step, failure := call(t, server, test.config)
			if failure != nil {
				t.Fatal(failure)
			}
			if got.method != test.method || got.url != test.url || got.body != test.body || got.header.Get("Content-Type") != test.contentType {
				t.Errorf("the server saw %+v", got)
			}
			if step.HTTPStatus != http.StatusCreated {
				t.Errorf("status %d", step.HTTPStatus)
			}
			want := `{"body":{"id":12345678901234567890},"headers":{"content-type":"application/json; charset=utf-8","x-request-id":"r-1"},"status":201}`
			if string(step.Output) != want {
				t.Errorf("output %s", step.Output)
			}
		})
	}
}

// Every call carries a key made of execution and node, the same in every attempt (guarantee 3), and the trace.
func TestIdempotencyKey(t *testing.T) {
	server, got := echo(t)
	var parents []string
	for attempt := 1; attempt <= 2; attempt++ {
		_, failure := call(t, server, `{"url": "URL", "headers": {"Authorization": "Bearer {{orderNumber}}"}}`, func(c *nodetest.Case) {
			c.Change = func(e *engine.Execution) {
				e.Attempt = attempt
				e.Event.Headers = map[string]string{
					"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tracestate": "v=1",
				}
			}
		})
		if failure != nil {
			t.Fatal(failure)
		}
		if keys := got.header.Values("Idempotency-Key"); !slices.Equal(keys, []string{nodetest.ExecutionID.String() + "/n"}) {
			t.Errorf("attempt %d: Idempotency-Key %q", attempt, keys)
		}
		parents = append(parents, got.header.Get("traceparent"))
		if !strings.HasPrefix(parents[attempt-1], "00-4bf92f3577b34da6a3ce929d0e0e4736-") || got.header.Get("tracestate") != "v=1" {
			t.Errorf("attempt %d: trace %q %q", attempt, parents, got.header.Get("tracestate"))
		}
		if got.header.Get("Authorization") != "Bearer A-1" || got.header.Get("User-Agent") != "RelayOps" {
			t.Errorf("headers %v", got.header)
		}
	}
	if parents[0] == parents[1] {
		t.Error("two attempts have the same parent id")
	}
}

func TestStatusIsClassified(t *testing.T) {
	retry, dead := engine.ClassRetry, engine.ClassDeadLetter
	for status, want := range map[int]engine.Class{
		300: dead, 304: dead, 400: dead, 401: dead, 403: dead, 404: dead, 408: retry, 409: dead, 410: dead, 422: dead, 425: retry,
		429: retry, 451: dead, 500: retry, 501: retry, 502: retry, 503: retry, 504: retry, 599: retry,
	} {
		server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			if status != http.StatusNotModified {
				_, _ = io.WriteString(w, "secret detail")
			}
		})
		step, failure := call(t, server, `{"url": "URL"}`)
		if failure == nil || failure.Class != want || failure.Code != engine.CodeHTTPStatus || failure.HTTPStatus != status || step.HTTPStatus != status {
			t.Errorf("%d: %+v, want %s", status, failure, want)
		}
		if failure != nil && strings.Contains(failure.Error(), "secret") || len(step.Output) > 0 {
			t.Errorf("%d: the body is in the failure or the output", status)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	date := func(d time.Duration) string { return nodetest.Now.Add(d).Format(http.TimeFormat) }
	for header, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "0": 0, "-5": 0, "soon": 0, "1.5": 0, "86400": time.Hour, "99999999999999999999": 0,
		date(90 * time.Second): 90 * time.Second, date(-time.Minute): 0, date(48 * time.Hour): time.Hour,
	} {
		server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", header)
			w.WriteHeader(http.StatusTooManyRequests)
		})
		if _, failure := call(t, server, `{"url": "URL"}`); failure == nil || failure.RetryAfter != want {
			t.Errorf("%q: %+v, want %s", header, failure, want)
		}
	}
}

func TestTransportFailures(t *testing.T) {
	release := make(chan struct{})
	hang := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	dribble := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "x")
			w.(http.Flusher).Flush()
			time.Sleep(10 * time.Millisecond)
		}
	})
	reset := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		}
	})
	cut := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "half")
	})
	garbage := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, "SSH-2.0-x\r\n\r\n")
			_ = conn.Close()
		}
	})
	headers := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) })
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo) // The handshake is meant to fail.
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	tests := []struct {
		name   string
		server *httptest.Server
		code   engine.Code
		status int
	}{
		{"hangs", hang, engine.CodeTimeout, 0}, {"one byte at a time", dribble, engine.CodeTimeout, 200},
		{"connection reset", reset, engine.CodeConnectionFailed, 0}, {"cut off", cut, engine.CodeConnectionFailed, 200},
		{"no HTTP", garbage, engine.CodeConnectionFailed, 0}, {"endless headers", headers, engine.CodeConnectionFailed, 0},
		{"unknown certificate", untrusted, engine.CodeConnectionFailed, 0}, {"refused", gone, engine.CodeConnectionFailed, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			began := time.Now()
			_, failure := call(t, test.server, `{"url": "URL"}`, func(c *nodetest.Case) {
				if test.code == engine.CodeTimeout {
					c.Timeout = 200 * time.Millisecond
				}
			})
			if failure == nil || failure.Code != test.code || failure.Class != engine.ClassRetry || failure.HTTPStatus != test.status {
				t.Errorf("%+v, want %s", failure, test.code)
			}
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

func TestUnknownNameMayPass(t *testing.T) {
	_, failure := nodetest.Run(t, nodetest.Case{
		Type: Type{}, Config: `{"url": "http://nowhere.invalid/"}`, Services: engine.Services{HTTP: client(t, loopback)},
	})
	if failure == nil || failure.Code != engine.CodeConnectionFailed || failure.Class != engine.ClassRetry {
		t.Errorf("%+v", failure)
	}
}

// A response beyond the bound is cut at once, however long it says it is.
func TestLargeResponsesAreCut(t *testing.T) {
	const gigabyte = 1 << 30
	for _, announced := range []bool{true, false} {
		var sent atomic.Int64
		server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			if announced {
				w.Header().Set("Content-Length", strconv.Itoa(gigabyte))
			}
			chunk := make([]byte, 64<<10)
			for sent.Load() < gigabyte {
				n, err := w.Write(chunk)
				sent.Add(int64(n))
				if err != nil {
					return
				}
			}
		})
		began := time.Now()
		_, failure := call(t, server, `{"url": "URL"}`)
		if failure == nil || failure.Code != engine.CodeResponseTooLarge || failure.Class != engine.ClassDeadLetter || failure.HTTPStatus != 200 {
			t.Errorf("announced %v: %+v", announced, failure)
		}
		if took := time.Since(began); took > 2*time.Second || sent.Load() > 64<<20 {
			t.Errorf("announced %v: took %s, %d bytes sent", announced, took, sent.Load())
		}
	}
}

func TestResponseBound(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		_, _ = w.Write([]byte(strings.Repeat("x", n)))
	})
	for n, code := range map[int]engine.Code{1000: "", 1001: engine.CodeResponseTooLarge} {
		_, failure := call(t, server, fmt.Sprintf(`{"url": "URL?n=%d"}`, n), func(c *nodetest.Case) { c.Services.MaxResponseBytes = 1000 })
		if failure == nil && code != "" || failure != nil && failure.Code != code {
			t.Errorf("%d bytes: %+v", n, failure)
		}
	}
	// What is not kept may be as large as it likes; what is kept fits into an output, or fails.
	for config, code := range map[string]engine.Code{
		`{"url": "URL?n=500000", "keepBody": false}`: "", `{"url": "URL?n=500000"}`: engine.CodeOutputTooLarge,
	} {
		step, failure := call(t, server, config)
		if failure == nil && code != "" || failure != nil && failure.Code != code {
			t.Errorf("%s: %+v", config, failure)
		}
		if code == "" && string(step.Output) != `{"body":null,"headers":{"content-type":"text/plain; charset=utf-8"},"status":200}` {
			t.Errorf("%s: %s", config, step.Output)
		}
	}
}

func TestResponseBody(t *testing.T) {
	tests := []struct{ contentType, body, want string }{
		{"application/json", ` {"a": 1.50}`, `{"a":1.50}`}, {"application/problem+json; x=y", `[1]`, `[1]`},
		{"application/json", `{broken`, `"{broken"`}, {"text/plain", `{"a": 1}`, `"{\"a\": 1}"`}, {"", "", "null"},
		{"application/json", "", "null"}, {"image/png", "\x89PNG\xff", "null"}, {"text/plain", "a\x00b", `"a\ufffdb"`},
		{"application/json", `"a\u0000b"`, `"a\ufffdb"`}, {"application/json", `{"a": "\ud800"}`, `{"a":"` + "\uFFFD" + `"}`},
	}
	for _, test := range tests {
		server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", test.contentType)
			_, _ = w.Write([]byte(test.body))
		})
		step, failure := call(t, server, `{"url": "URL"}`)
		var output struct {
			Body json.RawMessage `json:"body"`
		}
		if err := json.Unmarshal(step.Output, &output); failure != nil || err != nil || string(output.Body) != test.want {
			t.Errorf("%s %q: %s, %v", test.contentType, test.body, output.Body, failure)
		}
	}
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `[1e999999]`)
	})
	if _, failure := call(t, server, `{"url": "URL"}`); failure == nil || failure.Code != engine.CodeOutputTooLarge {
		t.Errorf("a number that jsonb cannot hold: %v", failure)
	}
}

func TestRedirectsAreRefused(t *testing.T) {
	var reached atomic.Bool
	target := serve(t, func(http.ResponseWriter, *http.Request) { reached.Store(true) })
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target.URL, status) })
		_, failure := call(t, server, `{"method": "POST", "url": "URL", "body": {}}`)
		if failure == nil || failure.Code != engine.CodeRedirectRefused || failure.Class != engine.ClassDeadLetter || failure.HTTPStatus != status {
			t.Errorf("%d: %+v", status, failure)
		}
	}
	if reached.Load() {
		t.Error("a redirect was followed")
	}
}

// Without a range that allows it, nothing on this machine is reached, by address or by name.
func TestLoopbackIsRefused(t *testing.T) {
	var reached atomic.Bool
	server := serve(t, func(http.ResponseWriter, *http.Request) { reached.Store(true) })
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	for _, host := range []string{"127.0.0.1", "localhost", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "127.1"} {
		_, failure := call(t, server, `{"url": "http://`+host+`:`+port+`/"}`, func(c *nodetest.Case) {
			c.Services.HTTP = client(t, runspec.HTTPPolicy{})
		})
		// Names that are numbers are not resolved by every system; they reach nothing either way.
		numeric := strings.ContainsAny(host[:1], "20") && host != "0.0.0.0" || host == "127.1"
		if failure == nil || failure.Code != engine.CodeAddressRefused && !numeric {
			t.Errorf("%s: %+v", host, failure)
		}
		if failure != nil && failure.Code == engine.CodeAddressRefused && failure.Class != engine.ClassDeadLetter {
			t.Errorf("%s: class %s", host, failure.Class)
		}
	}
	if reached.Load() {
		t.Error("the server was reached")
	}
}

// fakeDNS is a name server that answers every question for an IPv4 address with the next of its answers.
func fakeDNS(t *testing.T, answers ...string) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		question := make([]byte, 512)
		for asked := 0; ; {
			n, from, err := conn.ReadFrom(question)
			if err != nil {
				return
			}
			end := 12
			for question[end] != 0 {
				end += int(question[end]) + 1
			}
			end += 5 // The root's zero, type and class.
			answer := append([]byte(nil), question[:min(end, n)]...)
			copy(answer[2:], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0})
			if isA := question[end-3] == 1; isA {
				answer[7] = 1
				ip := netip.MustParseAddr(answers[min(asked, len(answers)-1)]).As4()
				asked++
				answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
				answer = append(answer, ip[:]...)
			}
			_, _ = conn.WriteTo(answer, from)
		}
	}()
	t.Cleanup(func() { _ = conn.Close(); <-done })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func TestNamesThatLeadInwardsAreRefused(t *testing.T) {
	var reached atomic.Int32
	server := serve(t, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	for _, answers := range [][]string{{"127.0.0.1"}, {"169.254.169.254"}, {"10.0.0.1"}} {
		c, err := newClient(runspec.HTTPPolicy{}, fakeDNS(t, answers...), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, failure := call(t, server, `{"url": "http://innocent.example:`+port+`/"}`, func(n *nodetest.Case) { n.Services.HTTP = c })
		if failure == nil || failure.Code != engine.CodeAddressRefused {
			t.Errorf("%v: %+v", answers, failure)
		}
	}
	if reached.Load() > 0 {
		t.Error("the server was reached")
	}
	// A name that is allowed at first and leads elsewhere later (DNS rebinding) gains nothing: each dial is checked.
	c, err := newClient(runspec.HTTPPolicy{AllowedCIDRs: []string{"127.0.0.1/32"}}, fakeDNS(t, "127.0.0.1", "127.0.0.2"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []engine.Code{"", engine.CodeAddressRefused} {
		_, failure := call(t, server, `{"url": "http://rebind.example:`+port+`/"}`, func(n *nodetest.Case) { n.Services.HTTP = c })
		if failure == nil && want != "" || failure != nil && failure.Code != want {
			t.Errorf("%+v, want %q", failure, want)
		}
		c.CloseIdleConnections()
	}
	if reached.Load() != 1 {
		t.Errorf("the server was reached %d times, want once", reached.Load())
	}
}

func TestProxyIsIgnored(t *testing.T) {
	var proxied atomic.Bool
	proxy := serve(t, func(http.ResponseWriter, *http.Request) { proxied.Store(true) })
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	_, failure := call(t, proxy, `{"url": "http://nowhere.invalid/"}`)
	if failure == nil || failure.Code != engine.CodeConnectionFailed || proxied.Load() {
		t.Errorf("%+v, proxied %v", failure, proxied.Load())
	}
}

func TestTLSAndHTTP2(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	trust := server.Client().Transport.(*http.Transport).TLSClientConfig
	c, err := newClient(loopback, net.DefaultResolver, &tls.Config{RootCAs: trust.RootCAs, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	step, failure := call(t, server, `{"url": "URL"}`, func(n *nodetest.Case) { n.Services.HTTP = c })
	if failure != nil || !strings.Contains(string(step.Output), `"body":"HTTP/2.0"`) {
		t.Errorf("%s, %v", step.Output, failure)
	}
}

func TestInvalidRequests(t *testing.T) {
	server, got := echo(t)
	for config, code := range map[string]engine.Code{
		`{"url": "URL", "headers": {"X-Ref": "{{lines}}"}}`:                          engine.CodeInvalidRequest,
		`{"url": "URL/{{nothing}}"}`:                                                 engine.CodePlaceholderUnset,
		`{"url": "URL", "query": {"o": "{{order}}"}}`:                                engine.CodeInvalidRequest,
		`{"url": "URL", "query": {"o": ["{{order}}"]}}`:                              engine.CodeInvalidRequest,
		`{"url": "{{text}}"}`:                                                        engine.CodeInvalidRequest,
		`{"url": "URL", "method": "POST", "body": {"a": "{{order.totalAmount.x}}"}}`: engine.CodePlaceholderUnset,
	} {
		_, failure := call(t, server, config)
		if failure == nil || failure.Code != code || failure.Class != engine.ClassDeadLetter {
			t.Errorf("%s: %+v, want %s", config, failure, code)
		}
	}
	if got.method != "" {
		t.Errorf("a request was sent: %+v", got)
	}
	if _, failure := call(t, server, `{"url": "URL"}`, func(c *nodetest.Case) { c.Services.HTTP = nil }); failure == nil || failure.Code != engine.CodePermanentError {
		t.Errorf("without a client: %v", failure)
	}
}

func TestFaults(t *testing.T) {
	for config, want := range map[string]string{
		`{}`: "url: found nothing; allowed: http:// or https://, a host and a path; may have placeholders (required)",
		`{"url": "ftp://x/", "method": "FETCH", "body": {"a": "{{"}, "timeout": "5s", "headers": {"Idempotency-Key": "x", "host": "y", "X": 5,
			"Content-Length": "1", "proxy-x": "y"}, "query": {"a": {"b": 1}}, "keepBody": "yes"}`: strings.Join([]string{
			`body.a: found the placeholder {{; allowed: after {{: a name; {{{{ stands for a literal {{`,
			`headers.Content-Length: found a header that RelayOps or the connection sets; allowed: another name`,
			`headers.Idempotency-Key: found a header that RelayOps or the connection sets; allowed: another name`,
			`headers.X: found a number; allowed: a string`,
			`headers.host: found a header that RelayOps or the connection sets; allowed: another name`,
			`headers.proxy-x: found a header that RelayOps or the connection sets; allowed: another name`,
			`keepBody: found a string; allowed: a boolean`,
			`method: found "FETCH" (did you mean "PATCH"?); allowed: GET, HEAD, POST, PUT, PATCH, DELETE`,
			`query.a: found an object; allowed: null or a boolean or a number or a string or an array`,
			`timeout: found an unknown field; allowed: body, headers, keepBody, method, query, url`,
			`url: found the scheme "ftp"; allowed: http:// or https://, a host and a path`,
		}, "\n"),
		`{"url": "http://x/", "method": "GET", "body": 1}`: "body: found a body in a GET request; allowed: POST, PUT, PATCH or DELETE with a body",
	} {
		if got := nodetest.Faults(t, Type{}, config); got != want {
			t.Errorf("%s:\n got %s\nwant %s", config, got, want)
		}
	}
}

func TestDefaultTimeout(t *testing.T) {
	runner, err := Type{}.Compile([]byte(`{"url": "http://x/"}`))
	if err != nil {
		t.Fatal(err)
	}
	if limited, ok := runner.(engine.TimeLimited); !ok || limited.DefaultTimeout() != 10*time.Second {
		t.Errorf("%v", runner)
	}
}

func TestKeptHeaders(t *testing.T) {
	got := keptHeadersOf(http.Header{
		"Etag": {"e"}, "Location": {"/orders/1"}, "X-Correlation-Id": {strings.Repeat("x", 2000)}, "Set-Cookie": {"secret"},
	})
	if !maps.Equal(got, map[string]any{"etag": "e", "location": "/orders/1"}) {
		t.Errorf("%v", got)
	}
}
