package process_test

import (
	"errors"
	"testing"
	"time"

	"github.com/relayops/relayops/internal/localpostgres"
)

// outage takes servers away and brings them back.
type outage struct {
	name     string
	down, up func(t *testing.T, w *world, server *localpostgres.Server)
	// database says that the database is away meanwhile.
	database bool
}

var (
	databaseStopped = outage{name: "database stopped", database: true, up: restartDatabase,
		down: func(t *testing.T, _ *world, server *localpostgres.Server) { must(t, server.Stop(t.Context())) }}
	databaseKilled = outage{name: "database killed", database: true, up: restartDatabase,
		down: func(t *testing.T, _ *world, server *localpostgres.Server) { must(t, server.Kill()) }}
	brokerStopped = outage{name: "broker stopped", up: restartBroker,
		down: func(_ *testing.T, w *world, _ *localpostgres.Server) { w.broker.Stop() }}
	brokerKilled = outage{name: "broker killed", up: restartBroker,
		down: func(_ *testing.T, w *world, _ *localpostgres.Server) { w.broker.Kill() }}
	bothKilled = outage{name: "both killed", database: true,
		down: func(t *testing.T, w *world, server *localpostgres.Server) {
			w.broker.Kill()
			must(t, server.Kill())
		},
		up: func(t *testing.T, w *world, server *localpostgres.Server) {
			restartDatabase(t, w, server)
			restartBroker(t, w, server)
		}}
)

func restartDatabase(t *testing.T, _ *world, server *localpostgres.Server) {
	must(t, server.Restart(t.Context()))
}

func restartBroker(_ *testing.T, w *world, _ *localpostgres.Server) { w.broker.Start() }

// Each server is stopped in order, then killed, for longer than any lease, while orders are placed. Relay and worker
// live on, say that they are not ready and then that they are, and afterwards every order is done, at its first
// attempt.
func TestOutagesUnderLoadBurnNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		outages []outage
	}{
		{"database", []outage{databaseStopped, databaseKilled}},
		{"broker", []outage{brokerStopped, brokerKilled}},
		{"both", []outage{bothKilled}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w, server := newWorldWithServer(t)
			relay, worker := w.relay(""), w.worker("")
			stop := w.load(t, 30, 7)
			defer stop()
			for _, o := range c.outages {
				relay.awaitReady()
				worker.awaitReady()
				w.awaitProgress(20)
				o.down(t, w, server)
				t.Logf("%s; relay: %s; worker: %s", o.name, relay.awaitNotReady(), worker.awaitNotReady())
				if !o.database {
					w.awaitProgress(20) // The producer does not need the broker.
				}
				time.Sleep(executionLease + time.Second)
				o.up(t, w, server)
				relay.awaitReady()
				worker.awaitReady()
			}
			w.awaitProgress(20)
			stop()
			w.account(all(fate{state: "SUCCEEDED", attempt: 1}))
			if !relay.running() || !worker.running() {
				t.Error("a daemon did not live through the outage")
			}
		})
	}
}

// Daemons that start before their servers wait for them.
func TestDaemonsStartBeforeTheirServers(t *testing.T) {
	t.Parallel()
	w, server := newWorldWithServer(t)
	w.commit(t, 5)
	w.broker.Kill()
	must(t, server.Kill())
	relay, worker := w.relay(""), w.worker("")
	t.Logf("relay: %s; worker: %s", relay.awaitNotReady(), worker.awaitNotReady())
	restartDatabase(t, w, server)
	t.Logf("relay: %s; worker: %s", relay.awaitNotReady(), worker.awaitNotReady())
	w.broker.Start()
	relay.awaitReady()
	worker.awaitReady()
	w.account(all(succeededAtOnce))
}

// awaitProgress waits until n more commits were answered.
func (w *world) awaitProgress(n int) {
	w.t.Helper()
	before := w.confirmedCount()
	eventually(w.t, func() error {
		if w.confirmedCount() < before+n {
			return errors.New("the producer does not get on")
		}
		return nil
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
