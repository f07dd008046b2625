// Command orderservice is the demo's application: it commits orders with their events, and reports what it did as
// JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relayops/relayops/hack/demo/erp"
	"github.com/relayops/relayops/hack/demo/orders"
)

func main() {
	plan := orders.Plan{PoisonSuffix: erp.PoisonSuffix}
	flag.IntVar(&plan.Orders, "orders", 300, "how many orders to commit")
	flag.Float64Var(&plan.Rate, "rate", 30, "how many in a second")
	flag.Uint64Var(&plan.Seed, "seed", 1, "what the orders follow from")
	flag.Parse()
	if err := run(plan); err != nil {
		fmt.Fprintln(os.Stderr, "orderservice:", err)
		os.Exit(1)
	}
}

func run(plan orders.Plan) error {
	databaseURL := os.Getenv("DATABASE_URL")
	if databaseURL == "" {
		return errors.New("DATABASE_URL is not set: relayops dev prints it")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	pool, err := pgxpool.New(ctx, databaseURL)
	if err != nil {
		return fmt.Errorf("DATABASE_URL: %w", err)
	}
	defer pool.Close()
	if err := orders.Prepare(ctx, pool); err != nil {
		return err
	}
	report, err := orders.Run(ctx, pool, plan)
	return errors.Join(err, json.NewEncoder(os.Stdout).Encode(report))
}
