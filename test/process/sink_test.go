package process_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// confidential stands in every payload and in every answer of the sink; no log may hold it.
const confidential = "do-not-log-me-4711"

// request is one call that reached the sink.
type request struct {
	number string
	key    string
	at     time.Time
}

// sink is the outside that http-request nodes act on: it records every request before it answers.
type sink struct {
	server *httptest.Server

	mu       sync.Mutex
	requests []request
	// answer decides about the nth request (from 1) of an order: a status, after blocking as long as it likes.
	answer func(number string, nth int, gone <-chan struct{}) int
}

func newSink(t *testing.T) *sink {
	s := &sink{answer: func(string, int, <-chan struct{}) int { return http.StatusOK }}
	s.server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.server.CloseClientConnections() // A handler that blocks ends with its client.
		s.server.Close()
	})
	return s
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Number string `json:"number"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, "the body is not JSON", http.StatusBadRequest)
		return
	}
	nth, answer := s.record(request{number: body.Number, key: r.Header.Get("Idempotency-Key"), at: time.Now()})
	status := answer(body.Number, nth, r.Context().Done())
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"note": confidential}) // The client may be gone.
}

func (s *sink) record(r request) (nth int, answer func(string, int, <-chan struct{}) int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	for _, earlier := range s.requests {
		if earlier.number == r.number {
			nth++
		}
	}
	return nth, s.answer
}

// answering replaces how the sink answers.
func (s *sink) answering(answer func(number string, nth int, gone <-chan struct{}) int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// seen is every request so far, by order number.
func (s *sink) seen() map[string][]request {
	s.mu.Lock()
	defer s.mu.Unlock()
	byNumber := make(map[string][]request)
	for _, r := range s.requests {
		byNumber[r.number] = append(byNumber[r.number], r)
	}
	return byNumber
}

// count is how many requests of one order were seen.
func (s *sink) count(number string) int { return len(s.seen()[number]) }
