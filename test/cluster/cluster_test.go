//go:build e2e

package cluster_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/api/outbox"
)

const relayManifest = `
apiVersion: relayops.io/v1alpha1
kind: OutboxRelay
metadata: {name: orders}
spec:
  database: {urlSecretRef: {name: orders-database, key: url}}
  nats: {url: %q}
  allowAllOrgs: true
  deletionPolicy: Delete
`

const pipelineManifest = `
apiVersion: relayops.io/v1alpha1
kind: Pipeline
metadata: {name: order-post}
spec:
  relayRef: {name: orders}
  trigger: order.post
  startFrom: Beginning
  replicas: 2
  deletionPolicy: Delete
  stepTimeout: 5s
  retry: {backOff: {initial: 200ms, max: 2s}}
  nodes:
  - {id: start, type: start}
  - {id: ok, type: set-status, config: {statusTag: %s, name: Seen, phase: order.post}}
  edges:
  - {from: start, to: ok}
`

// Orders are committed while the pipeline is changed, relay, worker and operator are killed, the database's password is
// rotated and the node is drained. In the end every committed order has exactly one execution that succeeded, and when
// everything is deleted nothing is left in broker and cluster.
func TestOperatorOnARealCluster(t *testing.T) {
	w := newWorld(t)
	t.Cleanup(func() {
		if t.Failed() {
			w.describe()
		}
	})
	w.install()
	began := time.Now()
	w.apply(fmt.Sprintf(relayManifest, w.natsURL))
	w.apply(fmt.Sprintf(pipelineManifest, "first"))
	w.eventually(time.Minute, "the missing Secret is named", func() (bool, string) {
		out := w.kubectl("-n", w.namespace, "get", "outboxrelay", "orders", "-o", "jsonpath={.status.conditions}")
		return strings.Contains(out, "orders-database"), out
	})
	w.secret("first")
	w.ready("outboxrelay/orders", "pipeline/order-post")
	t.Logf("apply to ready, with a Secret that came later: %s", time.Since(began).Round(time.Millisecond))

	stop, committed := w.orders()
	w.executed(20)
	t.Logf("apply to 20 executions: %s", time.Since(began).Round(time.Millisecond))

	w.apply(fmt.Sprintf(pipelineManifest, "second"))
	w.kill("app.kubernetes.io/name=relayops-relay", w.namespace)
	w.ready("outboxrelay/orders", "pipeline/order-post")
	w.kill("app.kubernetes.io/name=relayops-worker", w.namespace)
	w.kill("app.kubernetes.io/component=manager", system)
	// Only a new operator can admit this change and bring the status to its generation.
	w.eventually(time.Minute, "the change is admitted", func() (bool, string) {
		out, err := w.run(fmt.Sprintf(pipelineManifest, "third"), w.Kubectl, "-n", w.namespace, "apply", "-f", "-")
		return err == nil, out
	})
	w.ready("outboxrelay/orders", "pipeline/order-post")

	w.exec("ALTER ROLE " + roleName + " PASSWORD 'second'")
	w.secret("second")
	// Whoever is connected stays so: end that, and everybody has to come back with the new password.
	time.Sleep(3 * time.Second)
	w.exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '" + roleName + "'")
	before := w.count(succeeded)
	w.executed(before + 20)
	w.ready("outboxrelay/orders", "pipeline/order-post")

	node := strings.TrimSpace(w.kubectl("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}"))
	w.drain(node)
	w.kubectl("uncordon", node)
	w.ready("outboxrelay/orders", "pipeline/order-post")
	stop()
	total := int(committed.Load())
	w.executed(total)
	w.sums(total)
	w.remove()
}

const succeeded = "SELECT count(*) FROM relayops.pipeline_executions WHERE state = 'SUCCEEDED'"

func (w *world) install() {
	w.t.Helper()
	repository, tag, _ := strings.Cut(w.Image, ":")
	w.helm("upgrade", "--install", "relayops", "../../charts/relayops", "--namespace", system, "--create-namespace",
		"--set", "image.repository="+repository, "--set", "image.tag="+tag, "--set", "image.pullPolicy=IfNotPresent",
		"--wait", "--timeout", "3m")
	w.t.Cleanup(func() {
		// t.Context has ended.
		for _, arguments := range [][]string{
			{w.Kubectl, "delete", "namespace", w.namespace, "--ignore-not-found", "--wait=false"},
			{w.Helm, "uninstall", "relayops", "--namespace", system, "--ignore-not-found"},
		} {
			if out, err := command(arguments...); err != nil {
				w.t.Logf("%v: %v\n%s", arguments, err, out)
			}
		}
	})
	w.helm("test", "relayops", "--namespace", system)
	w.kubectl("create", "namespace", w.namespace)
	w.kubectl("label", "namespace", w.namespace, "pod-security.kubernetes.io/enforce=restricted")
}

func (w *world) secret(password string) {
	w.t.Helper()
	w.apply(fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: orders-database}\nstringData: {url: %q}\n",
		w.databaseURL(password)))
}

// orders commits an order with its event again and again, until it is stopped.
func (w *world) orders() (stop func(), committed *atomic.Int64) {
	ctx, cancel := context.WithCancel(context.Background())
	committed = &atomic.Int64{}
	var work sync.WaitGroup
	work.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			number := fmt.Sprintf("A-%05d", i)
			err := pgx.BeginFunc(context.Background(), w.pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(context.Background(), "INSERT INTO shop.orders VALUES ($1)", number); err != nil {
					return err
				}
				confirmed, err := event.New("acme", "OrderConfirmed", map[string]string{"orderNumber": number})
				if err != nil {
					return err
				}
				return outbox.Write(context.Background(), tx, confirmed)
			})
			if err != nil {
				w.t.Errorf("order %s: %v", number, err)
				return
			}
			committed.Add(1)
			time.Sleep(20 * time.Millisecond)
		}
	})
	w.t.Cleanup(func() { cancel(); work.Wait() })
	return func() { cancel(); work.Wait() }, committed
}

func (w *world) executed(n int) {
	w.t.Helper()
	w.eventually(2*time.Minute, fmt.Sprintf("%d executions", n), func() (bool, string) {
		found := w.count(succeeded)
		return found >= n, fmt.Sprint(found)
	})
}

// kill kills the pods of a label at once, as a node that is gone does.
func (w *world) kill(label, namespace string) {
	w.t.Helper()
	w.kubectl("-n", namespace, "delete", "pod", "-l", label, "--force", "--grace-period=0")
}

// drain evicts relays and workers from the only node: the relay goes, and one of two workers. The other one's disruption
// budget holds it, for no new one can be scheduled.
func (w *world) drain(node string) {
	w.t.Helper()
	out, err := w.run("", w.Kubectl, "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=20s",
		"--pod-selector=app.kubernetes.io/managed-by=relayops")
	if err == nil || !strings.Contains(out, "disruption budget") {
		w.t.Errorf("found %v, want the last worker's disruption budget to refuse\n%s", err, out)
	}
	for name, want := range map[string]int{"relayops-relay": 0, "relayops-worker": 1} {
		running := w.kubectl("-n", w.namespace, "get", "pods", "-l", "app.kubernetes.io/name="+name,
			"--field-selector=status.phase=Running", "-o", "name")
		if found := len(strings.Fields(running)); found != want {
			w.t.Errorf("on a drained node: found %d pods of %s, want %d", found, name, want)
		}
	}
}

// sums: none lost, none twice, none made up.
func (w *world) sums(total int) {
	w.t.Helper()
	for what, sql := range map[string]string{
		"orders":                    "SELECT count(*) FROM shop.orders",
		"events":                    "SELECT count(*) FROM relayops.outbox_events",
		"published events":          "SELECT count(*) FROM relayops.outbox_events WHERE status = 'PUBLISHED'",
		"executions":                "SELECT count(*) FROM relayops.pipeline_executions",
		"executions that succeeded": succeeded,
		"events with one":           "SELECT count(DISTINCT event_id) FROM relayops.pipeline_executions",
	} {
		if found := w.count(sql); found != total {
			w.t.Errorf("%s: found %d, want %d", what, found, total)
		}
	}
	if revisions := w.count("SELECT count(DISTINCT revision) FROM relayops.pipeline_executions"); revisions != 3 {
		w.t.Errorf("found executions of %d revisions, want 3: the pipeline was changed while events flowed", revisions)
	}
	w.t.Logf("%d orders committed, %d executions succeeded, none lost, none twice", total, w.count(succeeded))
}

// remove deletes both resources, whose policy is Delete: nothing hangs, and nothing is left but the record.
func (w *world) remove() {
	w.t.Helper()
	began := time.Now()
	w.kubectl("-n", w.namespace, "delete", "pipeline", "order-post", "--timeout=3m")
	w.kubectl("-n", w.namespace, "delete", "outboxrelay", "orders", "--timeout=3m")
	w.t.Logf("both resources deleted, with their clean-up, in %s", time.Since(began).Round(time.Millisecond))
	if n := w.count("SELECT count(*) FROM relayops.pipeline_subscriptions"); n != 0 {
		w.t.Errorf("%d subscriptions are left", n)
	}
	w.eventually(time.Minute, "the children are collected", func() (bool, string) {
		out := w.kubectl("-n", w.namespace, "get", "deployment,service,configmap,poddisruptionbudget,serviceaccount",
			"-l", "app.kubernetes.io/managed-by=relayops", "-o", "name")
		return strings.TrimSpace(out) == "", out
	})
	events := w.kubectl("-n", w.namespace, "get", "events", "-o", "jsonpath={range .items[*]}{.reason}{'\\n'}{end}")
	if strings.Count(events, "CleanedUp") != 2 {
		w.t.Errorf("found the events\n%s\nwant CleanedUp twice", events)
	}
}

// describe shows what there is, for whoever has to find out why.
func (w *world) describe() {
	for _, arguments := range [][]string{
		{w.Kubectl, "-n", w.namespace, "get", "outboxrelays,pipelines,deployments,pods,jobs,events", "-o", "wide"},
		{w.Kubectl, "-n", w.namespace, "describe", "outboxrelays,pipelines"},
		{w.Kubectl, "-n", w.namespace, "logs", "--prefix", "--tail=15", "-l", "app.kubernetes.io/part-of=relayops"},
		{w.Kubectl, "-n", system, "logs", "--prefix", "--tail=40", "-l", "app.kubernetes.io/component=manager"},
	} {
		out, err := command(arguments...)
		w.t.Logf("%v: %v\n%s", arguments, err, out)
	}
}
