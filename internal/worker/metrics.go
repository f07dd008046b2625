package worker

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/execution"
)

// metrics carry the pipeline, and no org, no event and no other label that grows with the data.
type metrics struct {
	executions *prometheus.CounterVec
	steps      *prometheus.CounterVec
	letters    *prometheus.CounterVec
	messages   *prometheus.CounterVec
	attempts   prometheus.Counter
	leasesLost prometheus.Counter
	recovered  prometheus.Counter
	inFlight   prometheus.Gauge
	due        prometheus.Gauge
	lag        prometheus.Gauge
	unacked    prometheus.Gauge
	// sweepFailures counts sweeps that could not be finished; swept is when this worker finished its last one.
	sweepFailures prometheus.Counter
	swept         prometheus.Gauge
	waiting       prometheus.Histogram
	executing     prometheus.Histogram
	paused        *prometheus.GaugeVec
}

// Outcomes of an attempt beside the states.
const (
	outcomeHandedBack = "handed_back"
	outcomeLeaseLost  = "lease_lost"
)

var outcomes = map[execution.State]string{
	execution.Succeeded: "succeeded", execution.Retry: "retry", execution.DeadLettered: "dead_lettered",
	execution.Cancelled: "cancelled",
}

func newMetrics(registry prometheus.Registerer, pipelineKey string) (*metrics, error) {
	ours := prometheus.WrapRegistererWith(prometheus.Labels{"pipeline": pipelineKey}, registry)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "relayops", Name: name, Help: help}, labels)
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "relayops", Name: name, Help: help})
	}
	seconds := func(name, help string) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "relayops", Name: name, Help: help,
			Buckets: prometheus.ExponentialBuckets(0.001, 3, 13)})
	}
	attempts := counter("attempts_total", "Attempts begun.")
	lost := counter("lease_lost_total", "Attempts whose lease was taken over before their end was recorded.")
	recovered := counter("swept_events_total", "Events that the sweep put into the ledger.")
	failures := counter("sweep_failures_total", "Sweeps, and looks at single messages, that failed.")
	m := &metrics{
		executions:    counter("executions_total", "Attempts by what became of the execution.", "outcome"),
		steps:         counter("steps_total", "Steps recorded, by node type and outcome.", "type", "outcome"),
		letters:       counter("dead_letters_total", "Dead letters written, by code.", "code"),
		messages:      counter("messages_total", "Messages by how they were settled.", "settlement"),
		attempts:      attempts.WithLabelValues(),
		leasesLost:    lost.WithLabelValues(),
		recovered:     recovered.WithLabelValues(),
		inFlight:      gauge("executions_in_flight", "Executions that run now."),
		due:           gauge("executions_due", "Executions that are due and not claimed, counted up to 10000."),
		lag:           gauge("consumer_lag", "Messages that the consumer was not given yet."),
		unacked:       gauge("consumer_unacknowledged", "Messages that were given to a worker and are not acknowledged."),
		sweepFailures: failures.WithLabelValues(),
		swept: gauge("sweep_last_success_timestamp_seconds",
			"Unix time of the last sweep that this worker finished; 0: none yet. Workers take turns."),
		waiting:   seconds("execution_waiting_seconds", "Time from the event to the first attempt's begin."),
		executing: seconds("attempt_executing_seconds", "Time that attempts spent executing."),
		paused: prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "relayops", Name: "worker_paused",
			Help: "1 for the reason why the worker takes nothing up."}, []string{"reason"}),
	}
	for _, outcome := range outcomes {
		m.executions.WithLabelValues(outcome)
	}
	m.executions.WithLabelValues(outcomeHandedBack)
	m.executions.WithLabelValues(outcomeLeaseLost)
	for _, collector := range []prometheus.Collector{
		m.executions, m.steps, m.letters, m.messages, attempts, lost, recovered, m.inFlight, m.due, m.lag, m.unacked,
		failures, m.swept, m.waiting, m.executing, m.paused,
	} {
		if err := ours.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) began(claim *execution.Claim) {
	m.attempts.Inc()
	if claim.First() {
		m.waiting.Observe(max(claim.ClaimedAt.Sub(claim.OccurredAt), 0).Seconds())
	}
}

func (m *metrics) ended(outcome string, took time.Duration) {
	m.executions.WithLabelValues(outcome).Inc()
	m.executing.Observe(took.Seconds())
	if outcome == outcomeLeaseLost {
		m.leasesLost.Inc()
	}
}

func (m *metrics) recorded(steps []engine.Step) {
	for i := range steps {
		m.steps.WithLabelValues(steps[i].NodeType, string(steps[i].Outcome)).Inc()
	}
}

func (m *metrics) reason(current Reason) {
	for _, reason := range Reasons() {
		value := 0.0
		if reason == current {
			value = 1
		}
		m.paused.WithLabelValues(string(reason)).Set(value)
	}
}
