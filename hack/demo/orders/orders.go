// Package orders is the demo's application: it commits orders, each with its event, in one transaction. It knows
// nothing of pipelines, relays or brokers; api/outbox is all that it has of RelayOps.
package orders

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/time/rate"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/api/outbox"
)

// RollbackEvery is how many orders there are to one that is given up after its event was written, as if its payment
// had been declined.
const RollbackEvery = 20

// customersAtOnce is how many transactions are open at once.
const customersAtOnce = 8

// Organisations that the shops belong to: two tenants.
var Organisations = []string{"acme", "globex"}

// Plan says what a run does.
type Plan struct {
	// Orders is how many orders commit, Rate how many in a second.
	Orders int
	Rate   float64
	// Seed makes two runs alike.
	Seed uint64
	// PoisonSuffix ends the number of the one order that nobody can process.
	PoisonSuffix string
}

// Report is what a run did.
type Report struct {
	Committed  int `json:"committed"`
	RolledBack int `json:"rolledBack"`
	// RolledBackEvents are the ids of events that were written and then rolled back: nobody may ever see them.
	RolledBackEvents []uuid.UUID `json:"rolledBackEvents"`
	// PoisonEvent is the event of the poisoned order.
	PoisonEvent uuid.UUID `json:"poisonEvent"`
}

// Order is what a customer buys: the payload of OrderConfirmed.
type Order struct {
	Number      string  `json:"orderNumber"`
	Customer    string  `json:"customer"`
	TotalAmount float64 `json:"totalAmount"`
	Currency    string  `json:"currency"`
	Items       []Item  `json:"items"`
}

// Item is one line of an order.
type Item struct {
	SKU      string  `json:"sku"`
	Quantity int     `json:"quantity"`
	Price    float64 `json:"price"`
}

// confirmed is the event's payload: the number at the top, the order below, as the sample pipeline reads them.
type confirmed struct {
	OrderNumber string `json:"orderNumber"`
	Order       Order  `json:"order"`
}

// Prepare makes the application's own table. db is a *pgx.Conn or a *pgxpool.Pool.
func Prepare(ctx context.Context, db outbox.Executor) error {
	_, err := db.Exec(ctx, `
		CREATE SCHEMA IF NOT EXISTS shop;
		CREATE TABLE IF NOT EXISTS shop.orders (
			org_id text NOT NULL, number text NOT NULL, customer text NOT NULL, total numeric NOT NULL,
			confirmed_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (org_id, number))`)
	if err != nil {
		return fmt.Errorf("make the table shop.orders: %w", err)
	}
	return nil
}

// Run commits the plan's orders and returns what it did, also when ctx ends before all are committed.
func Run(ctx context.Context, pool *pgxpool.Pool, plan Plan) (Report, error) {
	// After each commit the relay is told, outside the transaction: it polls anyway, this is only faster.
	pinger := outbox.NewPinger(pool) //nolint:contextcheck // Close ends it.
	defer pinger.Close()
	shop := &shop{pool: pool, pinger: pinger}
	limiter := rate.NewLimiter(rate.Limit(plan.Rate), 1)
	random := rand.New(rand.NewPCG(plan.Seed, plan.Seed))

	purchases := make(chan purchase)
	var customers sync.WaitGroup
	for range customersAtOnce {
		customers.Go(func() {
			for one := range purchases {
				shop.serve(ctx, one)
			}
		})
	}
	err := feed(ctx, limiter, purchases, plan, random)
	close(purchases)
	customers.Wait()
	// Close cuts off a ping that is under way; this one is for the last order.
	if pingErr := outbox.Ping(ctx, pool); pingErr != nil && ctx.Err() == nil {
		err = errors.Join(err, pingErr)
	}
	return shop.report(), errors.Join(err, shop.firstError())
}

// purchase is an order, and what becomes of it.
type purchase struct {
	org      string
	order    Order
	declined bool
	poison   bool
}

func feed(ctx context.Context, limiter *rate.Limiter, purchases chan<- purchase, plan Plan, random *rand.Rand) error {
	committing := 0
	for i := 1; committing < plan.Orders; i++ {
		if err := limiter.Wait(ctx); err != nil {
			return fmt.Errorf("orders were stopped: %w", err)
		}
		one := purchase{
			org: Organisations[i%len(Organisations)], order: newOrder(random, i), declined: i%RollbackEvery == 0,
		}
		if !one.declined {
			committing++
			if committing == (plan.Orders+1)/2 {
				one.poison = true
				one.order.Number += plan.PoisonSuffix
			}
		}
		select {
		case purchases <- one:
		case <-ctx.Done():
			return fmt.Errorf("orders were stopped: %w", ctx.Err())
		}
	}
	return nil
}

func newOrder(random *rand.Rand, number int) Order {
	order := Order{
		Number: fmt.Sprintf("A-%05d", number), Customer: fmt.Sprintf("customer-%d", 1+random.IntN(50)), Currency: "EUR",
	}
	for range 1 + random.IntN(4) {
		item := Item{
			SKU: fmt.Sprintf("SKU-%03d", random.IntN(200)), Quantity: 1 + random.IntN(3),
			Price: float64(100+random.IntN(9900)) / 100,
		}
		order.Items = append(order.Items, item)
		order.TotalAmount += item.Price * float64(item.Quantity)
	}
	order.TotalAmount = float64(int(order.TotalAmount*100+0.5)) / 100
	return order
}

// shop serves customers.
type shop struct {
	pool   *pgxpool.Pool
	pinger *outbox.Pinger

	committed atomic.Int64
	mu        sync.Mutex
	declined  []uuid.UUID
	poison    uuid.UUID
	err       error
}

// errDeclined rolls a transaction back.
var errDeclined = errors.New("payment declined")

func (s *shop) serve(ctx context.Context, one purchase) {
	id, err := s.confirm(ctx, one)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case errors.Is(err, errDeclined):
		s.declined = append(s.declined, id)
	case err != nil && s.err == nil && ctx.Err() == nil:
		s.err = err
	case err == nil:
		s.committed.Add(1)
		if one.poison {
			s.poison = id
		}
	}
}

// confirm writes the order and its event in one transaction: this is all that an application does.
func (s *shop) confirm(ctx context.Context, one purchase) (uuid.UUID, error) {
	confirmation, err := event.New(one.org, "OrderConfirmed", confirmed{OrderNumber: one.order.Number, Order: one.order})
	if err != nil {
		return uuid.Nil, err
	}
	confirmation.AggregateType, confirmation.AggregateID = "Order", one.order.Number

	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO shop.orders (org_id, number, customer, total) VALUES ($1, $2, $3, $4)",
			one.org, one.order.Number, one.order.Customer, one.order.TotalAmount)
		if err != nil {
			return fmt.Errorf("insert order %s: %w", one.order.Number, err)
		}
		if err := outbox.Write(ctx, tx, confirmation); err != nil {
			return err
		}
		if one.declined {
			return errDeclined // Order and event vanish together.
		}
		return nil
	})
	if err != nil {
		return confirmation.ID, err
	}
	s.pinger.Ping()
	return confirmation.ID, nil
}

func (s *shop) report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Report{
		Committed: int(s.committed.Load()), RolledBack: len(s.declined), RolledBackEvents: s.declined, PoisonEvent: s.poison,
	}
}

func (s *shop) firstError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
