package relay

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/relayops/relayops/internal/outbox"
)

// metrics carry no org, no event type and no other label that grows with the data.
type metrics struct {
	published       prometheus.Counter
	failures        *prometheus.CounterVec
	duplicates      *prometheus.CounterVec
	streamRecreated prometheus.Counter
	claimsLost      prometheus.Counter
	wakeUps         prometheus.Counter
	pending         prometheus.Gauge
	waiting         prometheus.Gauge
	failed          prometheus.Gauge
	oldest          prometheus.Gauge
	paused          *prometheus.GaugeVec
	batchRows       prometheus.Histogram
	batchSeconds    prometheus.Histogram
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	opts := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "relayops", Subsystem: "relay", Name: name, Help: help}
	}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts(opts(name, help)))
	}
	counters := func(label, name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts(opts(name, help)), []string{label})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts(opts(name, help)))
	}
	histogram := func(buckets []float64, name, help string) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "relayops", Subsystem: "relay", Name: name, Help: help, Buckets: buckets,
		})
	}
	m := &metrics{
		published:       counter("published_total", "Events acknowledged by the broker and recorded as published."),
		failures:        counters("code", "publish_failures_total", "Event-specific publish failures, by code."),
		duplicates:      counters("outcome", "duplicates_total", "Duplicate acknowledgements, by what they came to."),
		streamRecreated: counter("stream_recreated_total", "Times that a known stream was missing and made anew."),
		claimsLost:      counter("claims_lost_total", "Claims that ended before their rows were marked."),
		wakeUps:         counter("wake_ups_total", "Notifications received from producers."),
		pending:         gauge("pending", "Due events in the outbox, counted up to 10000."),
		waiting:         gauge("waiting", "Events in back-off or meant for later, counted up to 10000."),
		failed:          gauge("failed", "FAILED events in the outbox, counted up to 10000."),
		oldest:          gauge("oldest_age_seconds", "How long the oldest due event has been due."),
		paused: prometheus.NewGaugeVec(
			prometheus.GaugeOpts(opts("paused", "1 for the reason why the relay does not publish.")), []string{"reason"}),
		batchRows: histogram(prometheus.ExponentialBuckets(1, 4, 8), "batch_rows", "Rows of one claim."),
		batchSeconds: histogram(prometheus.ExponentialBuckets(0.001, 2.5, 10), "batch_seconds",
			"Time from a claim's begin to its commit."),
	}
	for _, code := range outbox.Codes() {
		m.failures.WithLabelValues(string(code))
	}
	m.duplicates.WithLabelValues("verified")
	m.duplicates.WithLabelValues("republished")
	for _, reason := range Reasons() {
		m.paused.WithLabelValues(string(reason))
	}
	for _, collector := range []prometheus.Collector{
		m.published, m.failures, m.duplicates, m.streamRecreated, m.claimsLost, m.wakeUps, m.pending, m.waiting, m.failed,
		m.oldest, m.paused, m.batchRows, m.batchSeconds,
	} {
		if err := registry.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
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

func (m *metrics) backlog(b outbox.Backlog) {
	m.pending.Set(float64(b.Due))
	m.waiting.Set(float64(b.Waiting))
	m.oldest.Set(b.OldestDue.Seconds())
}

func (m *metrics) batch(j *judgement, rows int, took time.Duration) {
	m.batchRows.Observe(float64(rows))
	m.batchSeconds.Observe(took.Seconds())
	m.published.Add(float64(len(j.marks.Published)))
	m.duplicates.WithLabelValues("verified").Add(float64(j.verified))
	m.duplicates.WithLabelValues("republished").Add(float64(j.republished))
	for code, count := range j.failures {
		m.failures.WithLabelValues(string(code)).Add(float64(count))
	}
}
