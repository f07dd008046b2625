package erp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/relayops/relayops/hack/demo/erp"
)

func TestARepeatedKeyIsAnsweredAsBeforeAndTakesNoSecondOrder(t *testing.T) {
	server := erp.New(1)
	address := serve(t, server)
	number := orderWith(t, server, address, http.StatusCreated)
	if got := post(t, address, number, "key-"+number); got != http.StatusCreated {
		t.Errorf("repeat = %d, want 201", got)
	}
	if stats := server.Stats(); stats.Repeats != 1 || stats.Doubles != 0 {
		t.Errorf("stats = %+v, want one repeat and no double", stats)
	}
	// The same order under another key is what a caller without idempotency does.
	post(t, address, number, "another key")
	if got := server.Stats().Doubles; got != 1 {
		t.Errorf("doubles = %d, want 1", got)
	}
}

func TestAPoisonedOrderIsAlwaysRefused(t *testing.T) {
	server := erp.New(1)
	address := serve(t, server)
	for range 3 {
		if got := post(t, address, "A-1"+erp.PoisonSuffix, "key"); got != http.StatusUnprocessableEntity {
			t.Errorf("status = %d, want 422", got)
		}
	}
	if stats := server.Stats(); stats.Refused != 3 || stats.Orders != 0 {
		t.Errorf("stats = %+v, want 3 refusals and no order", stats)
	}
}

func TestEveryOrderGetsThroughWithinThreeRequests(t *testing.T) {
	const orders = 400
	stats := postAll(t, 42, orders)
	if stats.Orders != orders || stats.Errors500 == 0 || stats.Unanswered == 0 {
		t.Errorf("stats = %+v, want %d orders, and some trouble of each kind", stats, orders)
	}
	if again := postAll(t, 42, orders); again != stats {
		t.Errorf("a second run with the same seed = %+v, want %+v", again, stats)
	}
	if other := postAll(t, 43, orders); other == stats {
		t.Errorf("a run with another seed is the same: %+v", other)
	}
}

func TestARequestWithoutAKeyIsRefused(t *testing.T) {
	address := serve(t, erp.New(1))
	if got := post(t, address, "A-1", ""); got != http.StatusBadRequest {
		t.Errorf("status = %d, want 400", got)
	}
}

// postAll posts each order until it is taken, at most three times.
func postAll(t *testing.T, seed uint64, orders int) erp.Stats {
	t.Helper()
	server := erp.New(seed)
	address := serve(t, server)
	for i := range orders {
		number := fmt.Sprintf("A-%04d", i)
		taken := false
		for attempt := 0; attempt < 3 && !taken; attempt++ {
			taken = post(t, address, number, "key-"+number) == http.StatusCreated
		}
		if !taken {
			t.Errorf("order %s was not taken in three requests", number)
		}
	}
	return server.Stats()
}

// orderWith posts orders until one is answered with status at once, and returns its number.
func orderWith(t *testing.T, server *erp.Server, address string, status int) string {
	t.Helper()
	for i := range 100 {
		number := fmt.Sprintf("O-%d", i)
		if post(t, address, number, "key-"+number) == status {
			return number
		}
	}
	t.Fatalf("no order of 100 got %d: %+v", status, server.Stats())
	return ""
}

func serve(t *testing.T, server *erp.Server) string {
	t.Helper()
	listening := httptest.NewServer(server.Handler())
	t.Cleanup(listening.Close)
	return listening.URL
}

// post gives the status, or 0 for a request that is never answered.
func post(t *testing.T, address, number, key string) int {
	t.Helper()
	body, err := json.Marshal(map[string]string{"number": number})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/orders", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}
