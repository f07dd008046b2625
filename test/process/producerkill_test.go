package process_test

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A producer that is killed between its INSERTs and its COMMIT leaves nothing: no order, no event, no execution.
func TestAProducerKilledBeforeItsCommitLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.relay("").awaitReady()
	w.worker("").awaitReady()

	stalled := exec.Command(os.Args[0])
	stalled.Env = append(os.Environ(), stalledProducerVariable+"="+w.url)
	stalled.Stderr = os.Stderr
	stalled.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	output, err := stalled.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := stalled.Start(); err != nil {
		t.Fatalf("start the producer: %v", err)
	}
	t.Cleanup(func() { _ = stalled.Process.Kill(); _ = stalled.Wait() })
	id, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatalf("the producer did not write its event: %v", err)
	}
	eventID := strings.TrimSpace(id)
	// The relay polls several times while the transaction is open.
	time.Sleep(time.Second)
	if open := one[int](w, `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND state = 'idle in transaction' AND query LIKE '%outbox%'`); open == 0 {
		t.Fatal("no transaction is open: the producer did not stall where it should")
	}
	if err := stalled.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// Events after it pass: what is missing below is missing because it was rolled back.
	w.commit(t, 5)
	w.account(all(succeededAtOnce))
	if rows := one[int](w, `SELECT (SELECT count(*) FROM shop.orders WHERE number = $1)
		+ (SELECT count(*) FROM relayops.outbox_events WHERE event_id = $2)
		+ (SELECT count(*) FROM relayops.pipeline_executions WHERE event_id = $2)`, stalledNumber, eventID); rows != 0 {
		t.Errorf("the killed producer left %d rows", rows)
	}
	if requests := w.sink.count(stalledNumber); requests != 0 {
		t.Errorf("the sink saw the killed producer's order %d times", requests)
	}
}
