package worker

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/relayops/relayops/api/event"
)

// Guarantee 5: whatever a payload or an answer says, none of it is in dead letters, codes, logs at info level, metrics
// or the status.
func TestNothingOfAnEventIsShown(t *testing.T) {
	const poison = "hunter2-poison"
	answers := func(n int, order string, w http.ResponseWriter) {
		status := http.StatusInternalServerError
		if strings.HasPrefix(order, "P") {
			status = http.StatusBadRequest
		}
		w.Header().Set("X-Why", poison)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"why": "`+poison+`"}`)
	}
	service := newERP(t, answers)
	w := newWorld(t, erpDefinition(service.URL))
	running := w.start()
	var last event.Delivery
	for _, payload := range []string{
		`{"number": "T-` + poison + `"}`, `{"number": "P-` + poison + `"}`, `{"no-number": "` + poison + `"}`,
		`"` + poison + `"`, `{"number": {"` + poison + `": 1}}`,
	} {
		d := w.foreign("acme", "OrderConfirmed", payload)
		w.publish(d)
		w.awaitState("acme", d.ID, "DEAD_LETTERED")
		last = *d
	}
	last.Payload = []byte(`{"other": "` + poison + `"}`)
	last.PayloadSHA256 = event.PayloadHash(last.Payload)
	w.publish(&last)
	w.publishRaw("acme", "OrderConfirmed", map[string][]string{event.HeaderEventID: {poison}}, []byte(poison))
	w.eventually("the messages' dead letters", func() string {
		if n := w.count("dead_letters", "execution_id IS NULL"); n != 2 {
			return fmt.Sprint(n)
		}
		return ""
	})
	w.awaitSettled()

	recorder := httptest.NewRecorder()
	promhttp.HandlerFor(w.registry, promhttp.HandlerOpts{}).ServeHTTP(recorder,
		httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/metrics", http.NoBody))
	shown := map[string]string{
		"dead letters": query[string](w, "SELECT string_agg(d::text, ' ') FROM relayops.dead_letters d"),
		"codes": query[string](w, `SELECT string_agg(e.code, ' ') || (SELECT string_agg(s.code || s.branch || s.outcome, ' ')
			FROM relayops.step_executions s) FROM relayops.pipeline_executions e`),
		"logs": w.logs.String(), "metrics": recorder.Body.String(), "status": fmt.Sprintf("%+v", running.Status()),
	}
	for where, text := range shown {
		if text == "" {
			t.Errorf("%s: nothing is shown at all", where)
		}
		if strings.Contains(text, poison) {
			t.Errorf("%s show it: %s", where, text)
		}
	}
	if strings.Contains(recorder.Body.String(), "acme") {
		t.Error("the metrics name an organisation")
	}
	equal(t, "dead letters", w.count("dead_letters", "true"), 7)
}
