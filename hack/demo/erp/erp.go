// Package erp is the demo's stand-in for an ERP: an HTTP server that is now and then as bad as real ones.
//
//	POST /orders   takes an order; Idempotency-Key decides whether it is a new one
//	GET  /stats    what it counted so far
//	GET  /orders   the numbers of the orders that it took
//
// What it does to an order hangs on the order's number and the seed alone, so two runs treat the same orders alike.
package erp

import (
	"encoding/json"
	"hash/fnv"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// PoisonSuffix ends the number of an order that the ERP refuses for good.
const PoisonSuffix = "-POISON"

// Shares of orders, per thousand, that get into trouble.
const (
	failOncePerMille  = 90
	failTwicePerMille = 30
	hangPerMille      = 15
)

// longestHang bounds how long a request that is never answered is held; the caller gives up before.
const longestHang = time.Minute

// Stats are what the ERP counted.
type Stats struct {
	// Requests of any fate.
	Requests int `json:"requests"`
	// Orders is how many distinct orders it took.
	Orders int `json:"orders"`
	// Repeats are requests with a key that it had taken an order for: answered as before, nothing done again.
	Repeats int `json:"repeats"`
	// Errors500 and Unanswered are requests that it failed on purpose, Refused those of poisoned orders.
	Errors500  int `json:"errors500"`
	Unanswered int `json:"unanswered"`
	Refused    int `json:"refused"`
	// Doubles are orders that came a second time under another key: each would be an effect executed twice.
	Doubles int `json:"doubles"`
}

// Server is the ERP.
type Server struct {
	seed uint64

	mu       sync.Mutex
	stats    Stats
	byKey    map[string]string // Idempotency-Key → order number
	byOrder  map[string]string // order number → Idempotency-Key
	attempts map[string]int    // order number → requests so far
}

// New makes an ERP whose moods follow from seed.
func New(seed uint64) *Server {
	return &Server{
		seed: seed, byKey: map[string]string{}, byOrder: map[string]string{}, attempts: map[string]int{},
	}
}

// Handler serves the ERP's endpoints.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", s.postOrder)
	mux.HandleFunc("GET /orders", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, s.orders()) })
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, s.Stats()) })
	return mux
}

// Stats so far.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

func (s *Server) orders() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.byOrder))
}

func (s *Server) postOrder(w http.ResponseWriter, r *http.Request) {
	var order struct {
		Number string `json:"number"`
	}
	key := r.Header.Get("Idempotency-Key")
	err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&order)
	if err != nil || order.Number == "" || key == "" {
		answer(w, http.StatusBadRequest, map[string]string{"error": "a JSON body with number, and Idempotency-Key"})
		return
	}
	switch s.decide(order.Number, key) {
	case moodRefuse:
		answer(w, http.StatusUnprocessableEntity, map[string]string{"error": "unknown customer"})
	case moodFail:
		answer(w, http.StatusInternalServerError, map[string]string{"error": "deadlock in module FI"})
	case moodHang:
		// The order was taken, and the answer is lost: the worst that can happen to a caller.
		select {
		case <-r.Context().Done():
		case <-time.After(longestHang):
		}
	case moodTake:
		answer(w, http.StatusCreated, map[string]string{"number": order.Number})
	}
}

type mood int

const (
	moodTake mood = iota
	moodFail
	moodHang
	moodRefuse
)

// decide counts a request, says what becomes of it, and takes the order if it is to be taken.
func (s *Server) decide(number, key string) mood {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Requests++
	s.attempts[number]++
	if _, taken := s.byKey[key]; taken {
		s.stats.Repeats++
		return moodTake
	}
	if strings.HasSuffix(number, PoisonSuffix) {
		s.stats.Refused++
		return moodRefuse
	}
	mood := s.moodFor(number, s.attempts[number])
	switch mood {
	case moodFail:
		s.stats.Errors500++
		return mood
	case moodHang:
		s.stats.Unanswered++
	default:
	}
	s.byKey[key] = number
	if _, double := s.byOrder[number]; double {
		s.stats.Doubles++
	} else {
		s.byOrder[number] = key
		s.stats.Orders++
	}
	return mood
}

// moodFor is a pure function of seed, order and number of the request.
func (s *Server) moodFor(number string, attempt int) mood {
	hash := fnv.New64a()
	_, _ = io.WriteString(hash, strconv.FormatUint(s.seed, 10)+"/"+number)
	lot := int(hash.Sum64() % 1000)
	switch {
	case lot < failTwicePerMille && attempt <= 2, lot < failTwicePerMille+failOncePerMille && attempt == 1:
		return moodFail
	case lot >= 1000-hangPerMille && attempt == 1:
		return moodHang
	default:
		return moodTake
	}
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // The caller is gone: nobody to tell.
}
