package process_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/api/outbox"
)

// createShop makes the application's own table. Its rows are the truth about what was committed.
const createShop = `CREATE SCHEMA shop;
	CREATE TABLE shop.orders (number text PRIMARY KEY, org text NOT NULL, event_id uuid NOT NULL)`

// orgs are the tenants: one with a plain name, one whose name has to be escaped in a subject.
var orgs = []string{"acme", "umbrella corp/eu"}

// order is what the shop sells, and the payload of its event.
type order struct {
	Number string `json:"number"`
	Total  int    `json:"total"`
	// Customer is what no log may hold.
	Customer string `json:"customer"`

	org     string
	eventID uuid.UUID
}

// key of the order's event: an event id belongs to an organisation.
func (o order) key() string { return eventKey(o.org, o.eventID.String()) }

func eventKey(org, eventID string) string { return org + "/" + eventID }

// producer commits orders with their events, and rolls others back.
type producer struct {
	pool   *pgxpool.Pool
	prefix string

	mu sync.Mutex
	// count numbers the orders.
	count int
	// confirmed orders had a commit that was answered; abandoned ones were rolled back on purpose.
	confirmed, abandoned []order
}

func newProducer(pool *pgxpool.Pool) *producer { return &producer{pool: pool, prefix: "O"} }

// commit commits n orders, each in a transaction of its own, for one org after the other.
func (p *producer) commit(t *testing.T, n int) []order {
	t.Helper()
	committed := make([]order, n)
	for i := range committed {
		o, err := p.write(t.Context(), true)
		if err != nil {
			t.Fatalf("commit an order: %v", err)
		}
		committed[i] = o
	}
	return committed
}

// rollBack writes n orders and rolls each back.
func (p *producer) rollBack(t *testing.T, n int) {
	t.Helper()
	for range n {
		if _, err := p.write(t.Context(), false); err != nil {
			t.Fatalf("roll an order back: %v", err)
		}
	}
}

// write writes an order and its event in one transaction and ends it. An error of a commit leaves the order's fate
// open: the table says.
func (p *producer) write(ctx context.Context, commit bool) (order, error) {
	p.mu.Lock()
	p.count++
	o := order{Number: fmt.Sprintf("%s-%d", p.prefix, p.count), Total: p.count, Customer: confidential}
	o.org = orgs[p.count%len(orgs)]
	p.mu.Unlock()
	tx, err := p.pool.Begin(ctx)
	if err != nil {
		return o, fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // After a commit it does nothing.
	if o.eventID, err = insertOrder(ctx, tx, o); err != nil {
		return o, err
	}
	if !commit {
		p.remember(&p.abandoned, o)
		return o, nil
	}
	if err := tx.Commit(ctx); err != nil {
		return o, fmt.Errorf("commit: %w", err)
	}
	p.remember(&p.confirmed, o)
	return o, nil
}

func (p *producer) remember(list *[]order, o order) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*list = append(*list, o)
}

func insertOrder(ctx context.Context, tx pgx.Tx, o order) (uuid.UUID, error) {
	confirmed, err := event.New(o.org, "OrderConfirmed", o)
	if err != nil {
		return uuid.Nil, err
	}
	confirmed.AggregateType, confirmed.AggregateID = "Order", o.Number
	if _, err := tx.Exec(ctx, "INSERT INTO shop.orders (number, org, event_id) VALUES ($1, $2, $3)",
		o.Number, o.org, confirmed.ID); err != nil {
		return uuid.Nil, fmt.Errorf("insert order: %w", err)
	}
	if err := outbox.Write(ctx, tx, confirmed); err != nil {
		return uuid.Nil, fmt.Errorf("write event: %w", err)
	}
	return confirmed.ID, nil
}

// load writes orders until stop is called, about perSecond of them, one in ten rolled back. Errors are expected: the
// servers are being killed meanwhile.
func (p *producer) load(t *testing.T, perSecond int, seed uint64) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		random := rand.New(rand.NewPCG(seed, seed))
		ticker := time.NewTicker(time.Second / time.Duration(perSecond))
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			attempt, cancelAttempt := context.WithTimeout(ctx, 5*time.Second)
			_, _ = p.write(attempt, random.IntN(10) > 0)
			cancelAttempt()
		}
	}()
	return sync.OnceFunc(func() { cancel(); <-done })
}

// confirmedCount is how many commits were answered so far.
func (p *producer) confirmedCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.confirmed)
}

const stalledProducerVariable = "RELAYOPS_PROCESS_STALLED_PRODUCER"

// stallInTransaction is a producer process that writes an order and its event, says so on its standard output, and
// never commits.
func stallInTransaction(databaseURL string) {
	ctx := context.Background()
	err := func() error {
		conn, err := pgx.Connect(ctx, databaseURL)
		if err != nil {
			return err
		}
		tx, err := conn.Begin(ctx)
		if err != nil {
			return err
		}
		o := order{Number: stalledNumber, Customer: confidential, org: orgs[0]}
		id, err := insertOrder(ctx, tx, o)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(os.Stdout, id); err != nil {
			return err
		}
		select {} // Until it is killed.
	}()
	fmt.Fprintln(os.Stderr, "stalled producer:", err)
	os.Exit(1)
}

const stalledNumber = "STALLED-1"
