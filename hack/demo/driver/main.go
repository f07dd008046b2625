package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/term"

	"github.com/relayops/relayops/hack/demo/erp"
	"github.com/relayops/relayops/hack/demo/orders"
	"github.com/relayops/relayops/internal/devstate"
)

const (
	erpAddress = "127.0.0.1:18080"
	// readyTimeout bounds the start of a part: relayops dev initialises a database.
	readyTimeout = time.Minute
	// stallTimeout: if nothing changes for so long, the demo has failed.
	stallTimeout = 45 * time.Second
)

// demo is one run.
type demo struct {
	binDir, dataDir, manifests string
	plan                       orders.Plan
	// oneshot ends the demo by itself.
	oneshot bool
	out     *os.File

	erp, relayops, orders *process
	state                 devstate.State
	conn                  *pgx.Conn
}

func main() {
	d := &demo{out: os.Stdout}
	flag.StringVar(&d.binDir, "bin", "bin/demo", "directory with the demo's own programs; relayops is in the one above")
	flag.StringVar(&d.dataDir, "data-dir", filepath.Join(devstate.DefaultDir, "demo"), "where data and logs lie")
	flag.StringVar(&d.manifests, "f", "config/samples", "manifests to run")
	flag.IntVar(&d.plan.Orders, "orders", 300, "how many orders to commit")
	flag.Float64Var(&d.plan.Rate, "rate", 30, "how many in a second")
	flag.Uint64Var(&d.plan.Seed, "seed", 1, "what orders and ERP follow from")
	flag.BoolVar(&d.oneshot, "oneshot", false, "end when all is accounted for (always, if this is no terminal)")
	flag.Parse()
	d.oneshot = d.oneshot || !term.IsTerminal(int(os.Stdout.Fd())) || !term.IsTerminal(int(os.Stdin.Fd()))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := d.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo:", err)
		os.Exit(1)
	}
}

func (d *demo) run(ctx context.Context) error {
	if d.plan.Orders < 2 || d.plan.Rate <= 0 {
		return fmt.Errorf("found ORDERS=%d and RATE=%v, allowed: 2 or more, and more than 0", d.plan.Orders, d.plan.Rate)
	}
	if err := os.MkdirAll(d.dataDir, 0o755); err != nil { //nolint:gosec // PostgreSQL's own account has to pass.
		return fmt.Errorf("data directory: %w", err)
	}
	defer d.stop() //nolint:contextcheck // It stops the parts when the context has ended, too.
	if err := d.startAll(ctx); err != nil {
		return d.stopped(ctx, err)
	}
	report, last, err := d.watch(ctx)
	if err != nil {
		return d.stopped(ctx, err)
	}
	if err := d.conclude(ctx, report, last); err != nil {
		return d.stopped(ctx, err)
	}
	if !d.oneshot {
		d.say("\nStill running. Look around with bin/relayops … --data-dir %s, or edit %s. Ctrl-C stops.",
			d.dataDir, d.manifests)
		<-ctx.Done()
	}
	return nil
}

// stopped is nil for a demo that was stopped by a person at a terminal, where that is no failure.
func (d *demo) stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && !d.oneshot {
		return nil
	}
	return err
}

func (d *demo) startAll(ctx context.Context) error {
	started := time.Now()
	d.say("RelayOps demo: %d orders, %g a second, through %s", d.plan.Orders, d.plan.Rate, d.manifests)
	seed := fmt.Sprint(d.plan.Seed)
	var err error
	if d.erp, err = d.start("erpstub", nil, "-listen", erpAddress, "-seed", seed); err != nil {
		return err
	}
	if err := d.erp.await(ctx, readyTimeout, d.erp.saysListening); err != nil {
		return err
	}
	d.say("  ERP stub at http://%s: sometimes it answers 500, now and then not at all", erpAddress)
	// The demo has a database of its own, whatever the environment names.
	d.relayops, err = d.start("relayops", []string{"DATABASE_URL="},
		"dev", "-f", d.manifests, "--data-dir", d.dataDir, "--fresh")
	if err != nil {
		return err
	}
	if err := d.relayops.await(ctx, readyTimeout, d.devIsReady); err != nil {
		return err
	}
	if d.conn, err = pgx.Connect(ctx, d.state.DatabaseURL); err != nil {
		return fmt.Errorf("connect to the demo's database: %w", err)
	}
	d.say("  relayops dev with a PostgreSQL and a NATS of its own, ready after %.1f s; logs in %s",
		time.Since(started).Seconds(), d.dataDir)
	if err := orders.Prepare(ctx, d.conn); err != nil {
		return err
	}
	d.orders, err = d.start("orderservice", []string{"DATABASE_URL=" + d.state.DatabaseURL}, "-orders",
		fmt.Sprint(d.plan.Orders), "-rate", fmt.Sprint(d.plan.Rate), "-seed", seed)
	d.say("  order service: each order and its event in one transaction; one of %d rolls back, one order is poisoned\n",
		orders.RollbackEvery)
	return err
}

// devIsReady reports whether the relayops dev that was started has written its state.
func (d *demo) devIsReady() bool {
	state, err := devstate.Read(d.dataDir)
	if err != nil || state.PID != d.relayops.cmd.Process.Pid {
		return false
	}
	d.state = state
	return true
}

// watch shows progress until everything that was committed has come to an end.
func (d *demo) watch(ctx context.Context) (orders.Report, tally, error) {
	show := newProgress(d.out, time.Now())
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	var last tally
	changed := time.Now()
	for {
		select {
		case <-ctx.Done():
			return orders.Report{}, last, errors.New("stopped before the end")
		case <-d.relayops.exited:
			return orders.Report{}, last, d.relayops.failure("ended")
		case <-d.erp.exited:
			return orders.Report{}, last, d.erp.failure("ended")
		case <-ticker.C:
		}
		now, err := readTally(ctx, d.conn)
		if err != nil {
			return orders.Report{}, last, err
		}
		show.show(now, time.Now())
		if now != last {
			last, changed = now, time.Now()
		}
		report, done, err := d.ordersReport()
		if err != nil || done && last.Committed > 0 && last.settled() >= last.Committed {
			show.finish(last, time.Now())
			return report, last, err
		}
		if time.Since(changed) > stallTimeout {
			show.finish(last, time.Now())
			return orders.Report{}, last, fmt.Errorf("nothing has changed for %s: see the logs in %s", stallTimeout, d.dataDir)
		}
	}
}

// ordersReport is the order service's report once it has ended.
func (d *demo) ordersReport() (report orders.Report, done bool, err error) {
	select {
	case <-d.orders.exited:
	default:
		return orders.Report{}, false, nil
	}
	if d.orders.err != nil {
		return orders.Report{}, true, d.orders.failure("failed")
	}
	text, err := os.ReadFile(d.orders.logPath)
	if err == nil {
		err = json.Unmarshal(text, &report)
	}
	if err != nil {
		return orders.Report{}, true, fmt.Errorf("report of the order service: %w", err)
	}
	return report, true, nil
}

// conclude prints summary and traces. Its error says that something is not accounted for.
func (d *demo) conclude(ctx context.Context, report orders.Report, last tally) error {
	f, err := d.gather(ctx, report, last)
	if err != nil {
		return err
	}
	text, ok := f.summary()
	d.say("\n%s", text)
	if err := d.showExamples(ctx); err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("the numbers do not add up: see the lines with NOT above, and the logs in %s", d.dataDir)
	}
	return nil
}

func (d *demo) gather(ctx context.Context, report orders.Report, last tally) (f facts, err error) {
	f.report, f.tally = report, last
	if f.missing, err = missing(ctx, d.conn); err != nil {
		return f, err
	}
	if f.phantoms, err = phantoms(ctx, d.conn, report.RolledBackEvents); err != nil {
		return f, err
	}
	if f.erp, err = d.erpStats(ctx); err != nil {
		return f, err
	}
	f.strangers, err = d.strangers(ctx)
	return f, err
}

// strangers counts orders at the ERP that the application does not have: orders that were rolled back, say.
func (d *demo) strangers(ctx context.Context) (n int, err error) {
	var taken []string
	if err := d.erpGet(ctx, "/orders", &taken); err != nil {
		return 0, err
	}
	numbers, err := orderNumbers(ctx, d.conn)
	if err != nil {
		return 0, err
	}
	known := make(map[string]bool, len(numbers))
	for _, number := range numbers {
		known[number] = true
	}
	for _, number := range taken {
		if !known[number] {
			n++
		}
	}
	return n, nil
}

// showExamples prints the story of an event that was retried, and of the one that died, as relayops tells them.
func (d *demo) showExamples(ctx context.Context) error {
	retried, exists, err := retriedExample(ctx, d.conn)
	if err != nil {
		return err
	}
	if exists {
		if err := d.showTrace(ctx, "What happened to an order that the ERP failed at first?", retried); err != nil {
			return err
		}
	}
	dead, exists, err := deadExample(ctx, d.conn)
	if err != nil || !exists {
		return err
	}
	return d.showTrace(ctx, "And to the poisoned one?", dead)
}

func (d *demo) showTrace(ctx context.Context, title string, one example) error {
	args := []string{"trace", one.event.String(), "--data-dir", d.dataDir}
	text, err := d.output(ctx, "relayops", append(args, "--database-url", d.state.DatabaseURL, "--org", one.org)...)
	if err != nil {
		return err
	}
	d.say("%s\n$ bin/relayops %s\n%s", title, strings.Join(args, " "), text)
	return nil
}

func (d *demo) erpStats(ctx context.Context) (stats erp.Stats, err error) {
	err = d.erpGet(ctx, "/stats", &stats)
	return stats, err
}

func (d *demo) erpGet(ctx context.Context, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+erpAddress+path, http.NoBody)
	if err != nil {
		return fmt.Errorf("ERP stub: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("ERP stub: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		return fmt.Errorf("ERP stub: %w", err)
	}
	return nil
}

func (d *demo) stop() {
	if d.conn != nil {
		_ = d.conn.Close(context.Background())
	}
	// The application first, then what works for it.
	for _, part := range []*process{d.orders, d.relayops, d.erp} {
		part.stop()
	}
}

func (d *demo) say(format string, args ...any) { _, _ = fmt.Fprintf(d.out, format+"\n", args...) }
