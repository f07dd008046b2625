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
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "relayops", Subsystem: "relay", Name: name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "relayops", Subsystem: "relay", Name: name, Help: help})
	}
	m := &metrics{
		published: counter("published_total", "Events that the broker acknowledged and the outbox records as published."),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "relayops", Subsystem: "relay",
			Name: "publish_failures_total", Help: "Event-specific publish failures, by code."}, []string{"code"}),
		duplicates: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "relayops", Subsystem: "relay",
			Name: "duplicates_total", Help: "Duplicate acknowledgements: verified as this event, or republished under another message id."},
			[]string{"outcome"}),
		streamRecreated: counter("stream_recreated_total", "Times that a stream which had been there was missing and made anew."),
		claimsLost:      counter("claims_lost_total", "Claims that ended before their rows were marked."),
		wakeUps:         counter("wake_ups_total", "Notifications received from producers."),
		pending:         gauge("pending", "Due events in the outbox, counted up to 10000."),
		waiting:         gauge("waiting", "Events in back-off or meant for later, counted up to 10000."),
		failed:          gauge("failed", "FAILED events in the outbox, counted up to 10000."),
		oldest:          gauge("oldest_age_seconds", "How long the oldest due event has been due."),
		paused: prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "relayops", Subsystem: "relay",
			Name: "paused", Help: "1 for the reason why the relay does not publish."}, []string{"reason"}),
		batchRows: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "relayops", Subsystem: "relay",
			Name: "batch_rows", Help: "Rows of one claim.", Buckets: prometheus.ExponentialBuckets(1, 4, 8)}),
		batchSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "relayops", Subsystem: "relay",
			Name: "batch_seconds", Help: "Time from a claim's begin to its commit.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 10)}),
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
